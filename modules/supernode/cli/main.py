"""The command `supernode`: one function a verb, in the order in which a newcomer meets them."""

from __future__ import annotations

import inspect
import os
import re
import sys

import typer

from supernode.cli.allocate import allocate
from supernode.cli.assign import assign
from supernode.cli.bringup import bringup
from supernode.cli.bundle import bundle
from supernode.cli.cabling import app as cabling
from supernode.cli.check import check
from supernode.cli.compare import compare
from supernode.cli.design import design
from supernode.cli.destroy import destroy
from supernode.cli.engine import engine
from supernode.cli.image import image
from supernode.cli.kinds import kinds
from supernode.cli.lab import app as lab
from supernode.cli.lab_up import up
from supernode.cli.output import describe
from supernode.cli.park import drain, quarantine, release
from supernode.cli.plan import plan
from supernode.cli.report import report
from supernode.cli.routes import routes
from supernode.cli.runs import runs
from supernode.cli.serve import serve
from supernode.cli.shell import shell
from supernode.cli.show import show
from supernode.cli.ssh import CONTEXT as SSH_CONTEXT
from supernode.cli.ssh import ssh
from supernode.cli.survey import survey
from supernode.cli.tune import tune
from supernode.cli.verify import verify
from supernode.errors import SupernodeError

app = typer.Typer(
    help="GPU supernodes from racked metal to a verified cluster. Begin with `supernode check lab`.",
    no_args_is_help=True,
    add_completion=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

for _verb in (
    check, survey, kinds, design, compare, routes, show, allocate, assign, tune, plan, bringup, verify, report, runs,
    bundle, shell, engine, image, serve, destroy, quarantine, drain, release,
):  # fmt: skip
    app.command()(_verb)

app.command(context_settings=SSH_CONTEXT)(ssh)
lab.command()(up)
app.add_typer(lab, name="lab")
app.add_typer(cabling, name="cabling")

for _command in (*app.registered_commands, *lab.registered_commands, *cabling.registered_commands):
    # Click fills paragraphs; \b keeps the lines of this one: each example stands on its own.
    _command.help = re.sub(r"\n(?=Example:)", "\n\b\n", inspect.getdoc(_command.callback) or "", count=1)


def main() -> None:
    """Run the command line; the entry point of the package.

    An error that no verb foresaw ends with 3 like everything that could not run: 1 says that there are findings.
    """
    try:
        app()
    except SupernodeError as error:
        sys.stderr.write(describe(error) + "\n")
        raise SystemExit(error.exit_code) from error
    except Exception as error:
        if os.environ.get("SUPERNODE_TRACEBACK") == "1":
            import traceback

            traceback.print_exception(error)
        hint = "this is a fault of supernode; SUPERNODE_TRACEBACK=1 shows where"
        sys.stderr.write(f"error: {type(error).__name__}: {error}\n\nhint: {hint}\n")
        raise SystemExit(SupernodeError.exit_code) from error
