"""The products that join two cages: each reads, names its source, and can be what it says."""

import pytest

from supernode import catalog

PRODUCTS = catalog.optics()
CAGES = {catalog.server(name).cage for name in catalog.server_kinds()} | {
    catalog.switch(name).cage for name in catalog.switch_kinds()
}


@pytest.mark.parametrize("product", PRODUCTS, ids=lambda product: product.name)
def test_products(product):
    assert product.source
    assert product.reach_m > 0
    if product.sort == "fibre":
        assert product.mode
        assert product.legs in (1, 2)
        return
    assert product.rate > 0
    assert product.ports >= 1
    assert product.links
    cable = product.sort in ("dac", "acc", "aoc")
    assert cable == bool(product.far) == bool(product.legs) == bool(product.lengths_m)
    assert cable != bool(product.optic)
    assert list(product.lengths_m) == sorted(product.lengths_m)
    assert not cable or product.ports % product.legs == 0


def test_names_are_unique():
    assert len({product.name for product in PRODUCTS}) == len(PRODUCTS)


def test_copper_is_short_and_comes_before_light():
    assert all(product.reach_m <= 3 for product in PRODUCTS if product.sort == "dac")
    assert all(product.reach_m <= 5 for product in PRODUCTS if product.sort == "acc")
    order = [product.sort for product in PRODUCTS if product.sort != "fibre"]
    assert order == sorted(order, key=["dac", "acc", "aoc", "transceiver"].index)


def test_every_cage_of_a_kind_is_one_that_something_fits_into():
    fitting = {cage for product in PRODUCTS for cage in (product.cage, product.far)}
    assert CAGES - {""} <= fitting


# Reach in metres and watts as the product's own page has them.
@pytest.mark.parametrize(
    ("name", "reach_m", "power_w"),
    [
        ("MCP4Y10-N", 2, 0.1),
        ("MCP7Y00-N", 3, None),
        ("MCA4J80-N", 5, None),
        ("MMA4Z00-NS", 50, 15),
        ("MMS4X00-NS", 100, 17),
        ("MMS4X00-NS400", 100, 9),
        ("MMS4X50-NM", 2000, None),
        ("MMS4A00", 500, None),
    ],
)
def test_figures_are_those_that_the_maker_publishes(name, reach_m, power_w):
    found = next(product for product in PRODUCTS if product.name == name)
    assert (found.reach_m, found.power_w) == (reach_m, power_w)
