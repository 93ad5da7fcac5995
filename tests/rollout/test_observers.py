"""The cooling units are read, fresh and dry, and Prometheus watches all that is designed."""

import pytest


@pytest.mark.check("cooling")
def test_cooling_unit_is_fresh_dry_and_plausible(holds):
    holds()


@pytest.mark.check("watch")
def test_everything_designed_is_scraped_and_has_its_alerts(holds):
    holds()
