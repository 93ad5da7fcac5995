import pytest

from supernode.boot import cache


def test_a_thing_is_built_once_for_its_digest(tmp_path):
    built = []

    def build(folder):
        built.append(folder)
        (folder / "thing").write_text("whole")

    first = cache.place(tmp_path, "image", "ab" * 32, build)
    second = cache.place(tmp_path, "image", "ab" * 32, build)
    assert first == second == tmp_path / "image" / ("ab" * 32)
    assert (first / "thing").read_text() == "whole"
    assert len(built) == 1


def test_a_build_that_fails_leaves_nothing_that_looks_built(tmp_path):
    def build(folder):
        (folder / "half").write_text("")
        raise RuntimeError("out of space")

    with pytest.raises(RuntimeError, match="out of space"):
        cache.place(tmp_path, "image", "cd" * 32, build)
    assert [path.name for path in (tmp_path / "image").iterdir()] == ["cd" * 32 + ".lock"]


def test_what_a_killed_build_left_is_removed_by_the_next(tmp_path):
    remains = tmp_path / "image" / f".{'ef' * 6}.killed"
    remains.mkdir(parents=True)
    (remains / "half").write_text("")
    cache.place(tmp_path, "image", "ef" * 32, lambda folder: None)
    assert not remains.exists()


def test_a_digest_tells_names_and_borders_apart():
    assert cache.digest_of({"a": b"1", "b": b"2"}) == cache.digest_of({"b": b"2", "a": b"1"})
    assert cache.digest_of({"a": b"1", "b": b"2"}) != cache.digest_of({"a": b"2", "b": b"1"})
    assert cache.digest_of({"a": b"12", "b": b""}) != cache.digest_of({"a": b"1", "b": b"2"})


def test_the_cache_lies_where_the_environment_says(monkeypatch, tmp_path):
    monkeypatch.setenv("SUPERNODE_CACHE", str(tmp_path))
    assert cache.default() == tmp_path
