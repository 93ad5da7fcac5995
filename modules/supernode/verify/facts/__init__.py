"""What the machines say of themselves: each module holds a COMMAND that a host runs, and a pure `parse`."""
