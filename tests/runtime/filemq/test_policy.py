"""The policy for missing files: what a server withdraws and what it keeps."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from specwire.runtime.filemq.disk import Mount, Unknown
from specwire.runtime.filemq.names import covers
from specwire.runtime.filemq.policy import FolderState, Look, decide

FILES = {"/a", "/d/a", "/d/b", "/d/e/a", "/f/a"}
PLACES = ("/", "/d", "/d/e", "/f", "/d/b")
HOME = FolderState({"/": "disk 1"})


def look(
    lost: set[str], *unknown: str, mounts: tuple[Mount, ...] = (), device: str = "disk 1", empty: bool = False
) -> Look:
    """A walk that found all files but these."""
    places = [Unknown(place, "cannot be read: broken") for place in unknown]
    return Look("/", lost, len(FILES), [Mount("/", device), *mounts], places, empty)


@given(
    lost=st.sets(st.sampled_from(sorted(FILES))),
    unknown=st.sets(st.sampled_from(PLACES)),
    accept=st.booleans(),
)
def test_only_what_the_disk_says_is_gone_is_withdrawn(
    lost: set[str], unknown: set[str], accept: bool
) -> None:
    decision = decide(look(lost, *unknown), HOME, accept=accept)
    assert decision.withdraw == {name for name in lost if not any(covers(place, name) for place in unknown)}
    assert decision.keep.keys() == unknown
    assert (decision.state, decision.waiting) == (HOME, False)


def test_a_folder_that_is_empty_waits_until_somebody_confirms() -> None:
    """Also when it is not empty any more at the next walk, or in the next run."""
    first = decide(look(FILES, empty=True), HOME, accept=False)
    assert first.withdraw == set() and first.waiting
    assert first.keep["/"].startswith("held 5 files and holds none: 5 files missing there stay listed")
    assert first.state.asked == ("/",)
    second = decide(look(FILES - {"/a"}), first.state, accept=False)
    assert second.withdraw == set() and second.state == first.state
    there = decide(look(set()), second.state, accept=False)
    assert (there.keep, there.state, there.waiting) == ({}, HOME, False)
    confirmed = decide(look(FILES, empty=True), second.state, accept=True)
    assert (confirmed.withdraw, confirmed.keep, confirmed.state) == (FILES, {}, HOME)


def test_another_device_waits_until_it_is_back_or_somebody_confirms() -> None:
    away = decide(look({"/a"}, device="disk 2"), HOME, accept=False)
    assert (away.withdraw, away.state) == (set(), HOME)
    assert "lies on another device than before" in away.keep["/"]
    back = decide(look({"/a"}), away.state, accept=False)
    assert back.withdraw == {"/a"}, "it is the old device, and the file is not there"
    confirmed = decide(look({"/a"}, device="disk 2"), away.state, accept=True)
    assert (confirmed.withdraw, confirmed.state.devices) == ({"/a"}, {"/": "disk 2"})


def test_another_device_with_all_files_is_the_folder_from_now_on() -> None:
    decision = decide(look(set(), device="disk 2"), HOME, accept=False)
    assert (decision.keep, decision.state.devices) == ({}, {"/": "disk 2"})


def test_a_disk_inside_the_folder_that_is_away_keeps_its_files_alone() -> None:
    before = FolderState({"/": "disk 1", "/d": "disk 2"})
    decision = decide(look({"/d/a", "/f/a"}), before, accept=False)
    assert (decision.withdraw, decision.state) == ({"/f/a"}, before)
    mounted = decide(look({"/f/a"}, mounts=(Mount("/d", "disk 3"),)), before, accept=False)
    assert (mounted.withdraw, mounted.state.devices["/d"]) == ({"/f/a"}, "disk 3")


def test_what_was_not_noted_by_an_earlier_version_is_nothing_to_wait_for() -> None:
    decision = decide(look({"/a"}, mounts=(Mount("/d", "disk 2"),)), FolderState(), accept=False)
    assert decision.withdraw == {"/a"}
    assert decision.state.devices == {"/": "disk 1", "/d": "disk 2"}
