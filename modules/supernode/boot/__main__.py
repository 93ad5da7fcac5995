"""What `server.ensure_running` starts: python -m supernode.boot FOLDER; its standard error is the server's log."""

import sys

from supernode import workspace
from supernode.boot import server
from supernode.errors import SupernodeError

if __name__ == "__main__":
    server.log_to_stderr()
    try:
        server.run(workspace.find(sys.argv[1]))
    except SupernodeError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(error.exit_code)
