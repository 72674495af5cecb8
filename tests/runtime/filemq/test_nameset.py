"""Names in order and sets of them, against Python's own lists and sets."""

from __future__ import annotations

from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st

from specwire.runtime.filemq.names import covers
from specwire.runtime.filemq.nameset import BLOCK_NAMES, NameSet, Order, SortedNames

small_blocks = patch("specwire.runtime.filemq.nameset.BLOCK_NAMES", 2)
leaves = st.sampled_from(["a", "b", "a b", "a-b", "a0", "ü", "\U0001f600"])
names = st.lists(leaves, min_size=1, max_size=3).map(lambda parts: "/" + "/".join(parts))
paths = st.one_of(st.just("/"), names)
changes = st.lists(st.tuples(st.booleans(), names), max_size=40)


def play(kept: SortedNames, there: set[str], story: list[tuple[bool, str]]) -> None:
    """Add and remove names in both."""
    for add, name in story:
        if add and name not in there:
            kept.add(name)
            there.add(name)
        elif not add and name in there:
            kept.remove(name)
            there.remove(name)


def order_of(there: set[str]) -> Order:
    kept = SortedNames()
    for name in there:
        kept.add(name)
    return kept.order()


@small_blocks
@given(changes, changes, paths)
def test_names_are_in_order_and_an_order_never_changes(
    first: list[tuple[bool, str]], second: list[tuple[bool, str]], path: str
) -> None:
    kept, there = SortedNames(), set[str]()
    play(kept, there, first)
    then, expected = kept.order(), sorted(name for name in there if covers(path, name))
    play(kept, there, second)
    assert sorted(then.under(path)) == expected
    assert list(then.under("/")) == sorted(then.under("/"))
    assert list(kept.order().under("/")) == sorted(there)
    assert all((kept.order().find(name) is not None) == (name in there) for _, name in first + second)


@small_blocks
@given(st.sets(names), st.lists(st.tuples(st.sampled_from(["add", "discard", "pop"]), names)), paths)
def test_set_of_names(there: set[str], story: list[tuple[str, str]], path: str) -> None:
    kept = NameSet(order_of(there), path)
    model = {name for name in there if covers(path, name)}
    for step, name in story:
        match step:
            case "add":
                kept.add([name])
                model |= {name} & there
            case "discard":
                assert kept.discard(name) == (name in model)
                model.discard(name)
            case "pop":
                first = min(model, default=None)
                assert kept.pop_first() == first
                model -= {first}
        assert (bool(kept), len(kept), list(kept)) == (bool(model), len(model), sorted(model))
        assert (name in kept) == (name in model)


@small_blocks
@given(st.sets(names), changes, st.data())
def test_sets_of_two_moments(there: set[str], meanwhile: list[tuple[bool, str]], data: st.DataObject) -> None:
    """A set from before a change of the names can be joined to one from after it, and taken out of it."""
    kept = SortedNames()
    for name in there:
        kept.add(name)
    before, older = kept.order(), set[str]()
    first = NameSet(before)
    for name in data.draw(st.sets(names)):
        first.add([name])
        older |= {name} & there
    play(kept, there, meanwhile)
    mine = data.draw(st.sets(names)) & there
    for change in ("update", "difference_update"):
        second = NameSet(kept.order())
        second.add(mine)
        getattr(second, change)(first)
        assert set(second) == (mine | (older & there) if change == "update" else mine - older)


def test_blocks_stay_small_and_what_did_not_change_is_shared() -> None:
    """A change replaces one block: whoever holds an older order holds little more."""
    kept = SortedNames()
    for n in range(40 * BLOCK_NAMES):
        kept.add(f"/{n:06}")
    before = kept.order()
    kept.add("/000000 new")
    kept.remove(f"/{39 * BLOCK_NAMES:06}")
    shared = sum(before.number_of(block) is not None for block in kept.order().blocks)
    assert len(before.blocks) - shared == 2
    assert max(map(len, before.blocks)) <= 2 * BLOCK_NAMES
    assert min(map(len, before.blocks)) >= BLOCK_NAMES // 2
