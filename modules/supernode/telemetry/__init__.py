"""The cooling agent: it reads every designed cooling unit in the background and serves what they showed as metrics.

    python3 -m supernode.telemetry /etc/supernode/cooling.json

It runs on hosts, from the Debian package `supernode-cooling`, and only reads.
"""
