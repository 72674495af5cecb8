"""Lists of hosts as brokers write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specwire.runtime.flux.hostlist import compress, expand


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", []),
        ("vm", ["vm"]),
        ("vm,vm,vm,", ["vm", "vm", "vm"]),
        ("test[0-3]", ["test0", "test1", "test2", "test3"]),
        ("a[1,3-4]b,c", ["a1b", "a3b", "a4b", "c"]),
        ("n[008-010]", ["n008", "n009", "n010"]),
        ("[7]", ["7"]),
    ],
)
def test_names_in_their_order(text: str, names: list[str]) -> None:
    assert expand(text, 10) == names


@pytest.mark.parametrize(
    "text", ["a[", "a[1", "a]1", "a[1]]", "a[]", "a[x]", "a[1-]", "a[1-2-3]", "a[12345678901]"]
)
def test_what_is_no_list(text: str) -> None:
    with pytest.raises(ValueError, match="is no "):
        expand(text, 10)


def test_a_few_octets_do_not_become_gigabytes() -> None:
    with pytest.raises(ValueError, match="more than 1000"):
        expand("a[0-9999999999]", 1000)


@pytest.mark.parametrize(
    ("names", "text"),
    [
        ([], ""),
        (["vm", "vm"], "vm,vm"),
        (["fake2"], "fake2"),
        (["test0", "test2", "test3", "a", "test4"], "test[0,2-3],a,test4"),
        (["n9", "n10", "n11"], "n[9-11]"),
        (["n08", "n09", "n10"], "n[08-10]"),
        (["n1", "n01", "n2"], "n[1,01,2]"),
        (["a1", "b2"], "a1,b2"),
        (["7"], "7"),
    ],
)
def test_names_are_written_as_ranges(names: list[str], text: str) -> None:
    assert compress(names) == text


@given(st.lists(st.from_regex("[a-c]{0,2}[0-9]{0,3}", fullmatch=True).filter(bool), max_size=20))
def test_names_that_are_written_are_read_again(names: list[str]) -> None:
    assert expand(compress(names), 20) == names
