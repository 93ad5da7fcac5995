"""What is done to a machine, one module for each phase; `run.PHASES` names them."""
