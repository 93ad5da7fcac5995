"""How a fabric is routed without deadlock: what opensm is given, or the BGP plan of a fabric of Ethernet."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

AXES = "xyz"


def torus_2qos(shape: Sequence[int], guids: Sequence[int]) -> Iterator[str]:
    """Yield torus-2QoS.conf (torus-2QoS.conf(5)): the shape, and one switch's neighbours, which say what is up.

    Args:
        shape: of two or three dimensions.
        guids: of the switches, the first dimension counting fastest.

    Raises:
        ValueError: not two or three dimensions, or not one GUID for each switch.
    """
    if len(shape) not in (2, 3):
        raise ValueError(f"torus-2QoS routes two or three dimensions, not {len(shape)}")
    if len(guids) != prod(shape):
        raise ValueError(f"{len(guids)} GUIDs for {prod(shape)} switches")
    # Of two switches there is one link: a dimension that is open, not closed.
    sizes = [f"{size}{'m' if size == 2 else 't'}" for size in shape] + ["1"] * (3 - len(shape))
    yield f"torus {' '.join(sizes)}\n"
    for axis, size in enumerate(shape):
        step = prod(shape[:axis])
        yield f"{AXES[axis]}p_link 0x{guids[0]:016x} 0x{guids[step]:016x}\n"
        if size == 4:  # the neighbours of a neighbour do not tell which way is up
            yield f"{AXES[axis]}m_link 0x{guids[0]:016x} 0x{guids[(size - 1) * step]:016x}\n"
