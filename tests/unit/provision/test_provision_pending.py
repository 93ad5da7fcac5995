"""Which of the operations that a killed engine left open are settled by the `up` that followed."""

import pytest

from supernode.bringup.provision import pending

URN = "urn:pulumi:lab::supernode::supernode:cluster:Supernode$supernode:index:Machine::"


def export(*held, **operations):
    rows = [{"resource": {"urn": URN + name.replace("_", "-")}, "type": kind} for name, kind in operations.items()]
    return {
        "version": 3,
        "deployment": {"resources": [{"urn": URN + name} for name in held], "pending_operations": rows},
    }


@pytest.mark.parametrize(
    ("held", "kind", "stays"),
    [
        (("gpu-001",), "creating", False),  # adopted
        ((), "creating", True),  # left out of this up, and designed: its create is still owed
        (("gpu-001",), "updating", False),
        ((), "deleting", False),
    ],
)
def test_what_is_in_the_state_or_gone_is_settled(held, kind, stays):
    stay, settled = pending.open_ends(export(*held, gpu_001=kind), {"gpu-001"})
    assert (len(stay), settled) == ((1, []) if stays else (0, ["gpu-001"]))


def test_what_is_no_longer_designed_is_settled():
    assert pending.open_ends(export(gpu_009="creating"), {"gpu-001"}) == ([], ["gpu-009"])


def test_a_stack_without_any_has_none():
    assert pending.open_ends({"version": 3, "deployment": {}}, set()) == ([], [])
