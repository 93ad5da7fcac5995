"""Pictures of a design as SVG, line by line: its fabric, its scale-up domains, its racks."""
