"""Families of topologies: from a few parameters to a graph, and what is proved of it.

A family is one module under `known/`; it is used for a scale-up domain, whose vertices are cards, and, behind switches,
for a scale-out fabric.
"""

from supernode.families.graph import LINK, Graph, Group, behind_switches, linked
from supernode.families.proofs import Proofs, prove, weakest
from supernode.families.registry import Family, Parameters, Routing, bounded, families, family, proved

__all__ = [
    "LINK",
    "Family",
    "Graph",
    "Group",
    "Parameters",
    "Proofs",
    "Routing",
    "behind_switches",
    "bounded",
    "families",
    "family",
    "linked",
    "prove",
    "proved",
    "weakest",
]
