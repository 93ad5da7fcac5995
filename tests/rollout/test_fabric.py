"""The fabric is as designed: cables, ports, packet sizes, rates, and the kernel's ways."""

import pytest


@pytest.mark.check("cabling")
def test_each_end_hears_the_designed_other(holds):
    holds()


@pytest.mark.check("ib-links")
def test_infiniband_link_is_active_with_all_its_lanes(holds):
    holds()


@pytest.mark.check("subnet-manager")
def test_subnet_has_one_master_and_it_is_the_designed_one(holds):
    holds()


@pytest.mark.check("ports")
def test_switch_port_is_up_with_its_mtu(holds):
    holds()


@pytest.mark.check("rails")
def test_rail_is_up_with_its_mtu_and_address(holds):
    holds()


@pytest.mark.check("mtu")
def test_declared_mtu_passes_and_no_more(holds):
    holds()


@pytest.mark.check("rate")
def test_cable_carries_its_rate(holds):
    holds()


@pytest.mark.check("fib")
def test_kernel_forwards_over_every_designed_way(holds):
    holds()
