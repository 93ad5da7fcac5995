"""The deploy medium's own system: its parts, taken from the golden image's root, and the init that writes the disk."""
