"""A vendor's point-to-point sheet, or a `.topo` file, compared with the design before a cable is laid. Pure."""
