"""`supernode serve`: the server that machines boot from, report to and install from."""

from __future__ import annotations

from typing import Annotated

import typer

from supernode.cli import inputs
from supernode.cli.output import emit, errors_end_the_process


def serve(
    environment: Annotated[str, typer.Argument(help="a folder under inventories/, or a path")],
    stop: Annotated[bool, typer.Option("--stop", help="end the server that runs for this environment")] = False,
    background: Annotated[
        bool,
        typer.Option("--background", help="start it detached, unless it runs already; the log is under .supernode/"),
    ] = False,
    new_ca: Annotated[
        bool, typer.Option("--new-ca", help="the CA is lost: make another, which no machine in service trusts yet")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="print the result as JSON")] = False,
) -> None:
    """Serve an environment's image, deploy media and package mirror over TLS, and take its machines' reports.

    It listens on site.serve with a certificate of the environment's own CA (secrets/serve-ca.pem), until it is
    interrupted. `supernode bringup` starts it in the background when it does not run.

    Example: supernode serve lab
    """
    from supernode.boot import server, tls

    folder, locate = inputs.find(environment)
    with errors_end_the_process(locate):
        if new_ca:
            tls.ensure(folder, str(inputs.design(folder).environment.site.serve.address), anew=True)
        if stop:
            ended = server.stop(folder)
            emit({"stopped": ended}, as_json=as_json, text=lambda: "stopped" if ended else "none was running")
        elif background:
            url = server.ensure_running(folder)
            emit({"url": url}, as_json=as_json, text=lambda: url)
        else:
            server.log_to_stderr()
            server.run(folder, lambda url: emit({"url": url}, as_json=as_json, text=lambda: f"serving {url}"))
