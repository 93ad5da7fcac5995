"""Where things stand: names of racks as documents write them."""

from __future__ import annotations

import re

LONGEST = 16


def rack_name(text: str) -> str:
    """Write a rack's name as environment.yml takes it: small letters and digits, a letter first; "" for nothing."""
    plain = re.sub(r"[^a-z0-9]", "", text.lower())
    return (plain if plain[:1].isalpha() or not plain else f"r{plain}")[:LONGEST]
