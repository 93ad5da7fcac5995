"""The machines are there, are who they should be, run what was installed, and keep time."""

import pytest


@pytest.mark.check("reach")
def test_answers_with_its_pinned_key(holds):
    holds()


@pytest.mark.check("identity")
def test_is_who_machines_yml_says(holds):
    holds()


@pytest.mark.check("image")
def test_runs_the_installed_image(holds):
    holds()


@pytest.mark.check("time")
def test_clock_is_near(holds):
    holds()


@pytest.mark.check("gpus")
def test_accelerators_are_all_there_under_the_pinned_driver(holds):
    holds()


@pytest.mark.check("scheduler")
def test_is_a_node_of_the_scheduler(holds):
    holds()


@pytest.mark.check("collectives")
def test_the_collective_library_reads_what_was_designed(holds):
    holds()
