"""supernode: racked metal to a verified GPU cluster."""
