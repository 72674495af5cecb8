"""Virtual names: which are accepted, what a path covers, how a cache names files."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specwire.runtime.filemq.names import (
    absolute_name,
    covers,
    cut_reason,
    fault_in_name,
    fault_in_path,
    normalise_path,
    relative_name,
)

NAMES = st.lists(st.text(st.characters(exclude_characters="/\0", codec="utf-8"), min_size=1), min_size=1).map(
    lambda components: "/" + "/".join(components)
)


@pytest.mark.parametrize("name", ["/a", "/a b/c", "/ünï/文件.txt", "/..a", "/a..", "/...", "/" + "x" * 254])
def test_sound_names(name: str) -> None:
    assert fault_in_name(name) is None


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "does not begin"),
        ("a", "does not begin"),
        ("../a", "does not begin"),
        ("/", "empty component"),
        ("/a/", "empty component"),
        ("//a", "empty component"),
        ("/a//b", "empty component"),
        ("/..", "'..'"),
        ("/a/../b", "'..'"),
        ("/./a", "'.'"),
        ("/a\0b", "NUL"),
        ("/" + "x" * 255, "256 octets"),
        ("/" + "é" * 128, "257 octets"),
        ("/\udcff", "UTF-8"),
        ("/.specwire-inbox/journal", "reserved"),
        ("/a/.specwire-inbox", "reserved"),
    ],
)
def test_faulty_names(name: str, reason: str) -> None:
    assert reason in str(fault_in_name(name))


@pytest.mark.parametrize(
    ("path", "name", "covered"),
    [
        ("/", "/a", True),
        ("/", "/a/b", True),
        ("/foo", "/foo", True),
        ("/foo", "/foo/bar", True),
        ("/foo", "/foobar", False),
        ("/foo", "/fo", False),
        ("/foo/bar", "/foo", False),
    ],
)
def test_a_path_covers_whole_components(path: str, name: str, covered: bool) -> None:
    assert covers(path, name) is covered


def test_a_path_may_end_with_a_slash() -> None:
    assert (normalise_path("/a/"), normalise_path("/"), normalise_path("/a")) == ("/a", "/", "/a")
    assert fault_in_path("/") is None


@given(NAMES, st.integers(0, 5))
def test_cache_names_lead_back(name: str, depth: int) -> None:
    """The name in a cache of a path means the same file to the other side."""
    components = name[1:].split("/")
    path = "/" + "/".join(components[: min(depth, len(components))])
    assert covers(path, name)
    assert absolute_name(path, relative_name(path, name)) == name


@given(st.text())
def test_reasons_fit_a_string(reason: str) -> None:
    assert len(cut_reason(reason).encode()) <= 255
