"""The other site is joined to this one: by the tunnel, and by nothing else."""

import pytest


@pytest.mark.check("tunnel")
def test_tunnel_carries_what_it_was_designed_for_and_is_the_only_way(holds):
    holds()
