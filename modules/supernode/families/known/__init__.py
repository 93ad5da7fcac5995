"""The families, one module each."""
