"""Lists of hosts as brokers write them."""

from __future__ import annotations

import pytest

from specwire.runtime.flux.hostlist import expand


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
