"""The vendor of the simulated accelerators: the packages of its driver, and the signed repository that it serves."""
