"""Argument parsing, printing and exit codes; nothing else in the package prints."""
