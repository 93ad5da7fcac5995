"""The design in the formats of other tools, one module each: docs/exports.md says who reads which back.

A port is called by the design's name for it (`rail3` of a host, what the switch's system calls it otherwise), and in
InfiniBand by its adapter's name: no GUID, no MAC address is known before the machines stand.
"""
