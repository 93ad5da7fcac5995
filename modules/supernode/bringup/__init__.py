"""The run: provision, configure, verify, against a clock, with everything it learns written down as it happens."""
