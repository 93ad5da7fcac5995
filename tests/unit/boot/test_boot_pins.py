import pytest

from supernode.boot import pins


def test_a_lock_is_read_back_as_it_was_written():
    versions = {"zstd": "1.5.4+dfsg2-5", "bash": "5.2.15-2+b7", "iputils-ping": "3:20221126-1+deb12u1"}
    assert pins.parse(pins.format_lock(versions)) == versions


def test_comments_and_empty_lines_are_skipped():
    assert pins.parse("# all\n\nbash=5.2 # the shell\n") == {"bash": "5.2"}


@pytest.mark.parametrize("line", ["bash", "bash=", "=5.2", "bash 5.2"])
def test_another_form_is_an_error_that_names_the_line(line):
    with pytest.raises(ValueError, match=r"line 2: "):
        pins.parse(f"zstd=1\n{line}\n")


def test_preferences_hold_apt_to_a_version_even_below_the_newest():
    assert pins.preferences({"bash": "5.2"}) == "Package: bash\nPin: version 5.2\nPin-Priority: 1001\n"


def test_drift_names_only_what_came_otherwise_than_pinned():
    assert pins.drift({"a": "1", "b": "2", "absent": "3"}, {"a": "1", "b": "2.1", "unpinned": "9"}) == {
        "b": ("2", "2.1")
    }


def test_the_pins_of_the_suite_are_well_formed_and_cover_what_an_image_needs():
    found = pins.parse(pins.text("bookworm"))
    assert {"systemd", "openssh-server", "linux-image-cloud-amd64", "python3", "chrony"} <= set(found)
    assert pins.text("no-such-suite") == ""
