"""What the role tests share: the roles on disk and their argument specs."""

import pytest
import yaml

from supernode import packaged

ROLES = packaged.root() / "playbooks" / "roles"


def options_of(role: str) -> dict:
    document = yaml.safe_load((ROLES / role / "meta" / "argument_specs.yml").read_text())
    return document["argument_specs"]["main"]["options"]


@pytest.fixture(scope="session")
def specs() -> dict[str, dict]:
    """The options of each role, by role."""
    return {folder.name: options_of(folder.name) for folder in sorted(ROLES.iterdir()) if folder.is_dir()}
