"""From an environment's name to its documents, for every verb; a problem's path becomes file:line."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from supernode import workspace
from supernode.cli.output import errors_end_the_process
from supernode.errors import Problem
from supernode.workspace import EnvironmentFolder

if TYPE_CHECKING:
    from supernode.design import Design
    from supernode.spec import Inputs


def find(environment: str) -> tuple[EnvironmentFolder, Callable[[Problem], str]]:
    """Find an environment, and a function that says where a problem lies; ends the process when there is none."""
    with errors_end_the_process():
        folder = workspace.find(environment)
    return folder, locator(folder)


def locator(folder: EnvironmentFolder) -> Callable[[Problem], str]:
    """Return a function from a Problem to `file:line`."""

    def locate(problem: Problem) -> str:
        from supernode import spec

        text = folder.texts().get(problem.document, "")
        shown = folder.document(problem.document)
        path = shown.relative_to(folder.root) if shown.is_relative_to(folder.root) else shown
        return f"{path}:{spec.locate(text, problem.path)}"

    return locate


def read(folder: EnvironmentFolder) -> Inputs:
    """Read and check the documents.

    Raises:
        Refusal: with every problem at once.
    """
    from supernode import spec

    return spec.read(folder.texts(), name=folder.name)


def design(folder: EnvironmentFolder) -> Design:
    """Compute the Design of the documents on disk."""
    found = read(folder)
    from supernode import design as designing  # after reading: whoever made a typing error need not wait for numpy

    return designing.build(found)
