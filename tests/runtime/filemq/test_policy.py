"""The policy for missing files: what a server withdraws, and how many files a subscriber deletes at once."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from specwire.runtime.filemq.disk import Mount, Unknown
from specwire.runtime.filemq.names import covers
from specwire.runtime.filemq.policy import DeletionLimit, FolderState, InboxRules, Look, decide

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


# ---- deletions in an inbox


def limit(**rules: float) -> DeletionLimit:
    return DeletionLimit(InboxRules(**rules))  # type: ignore[arg-type]


def delete(limited: DeletionLimit, held: int, wanted: int, now: float = 0.0) -> int:
    """Return how many of so many files are deleted."""
    for done in range(wanted):
        if not limited.allows(f"/{held - done}", held - done, now):
            return done
    return wanted


def test_half_of_the_files_or_a_thousand_may_go_and_ten_always() -> None:
    for held, most in ((10, 10), (12, 10), (100, 50), (5000, 1000)):
        limited = limit()
        assert delete(limited, held, held) == most
        assert len(limited.take_back()) == most


def test_deletions_are_added_up_within_the_window() -> None:
    limited = limit(window_s=100.0)
    assert delete(limited, 100, 30, now=0.0) == 30
    assert delete(limited, 70, 30, now=99.0) == 20, "50 of 100"
    limited = limit(window_s=100.0)
    assert delete(limited, 100, 30, now=0.0) == 30
    assert delete(limited, 70, 35, now=101.0) == 35, "half of 70"


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=40))
def test_never_fewer_than_the_limit_below_the_best_moment(steps: list[tuple[int, int]]) -> None:
    """Files come, and deletions are wanted, in any number and order within one window."""
    limited, held, peak = limit(always=3), 0, 0
    for come, go in steps:
        held += come
        if go and held:
            peak = max(peak, held)
        held -= delete(limited, held, min(go, held))
        assert peak - held <= limited.most(peak)


def test_files_that_come_and_go_are_never_too_many() -> None:
    limited = limit()
    for now in range(10_000):
        assert limited.allows(f"/{now}", 5, now / 100)


def test_accepted_until_there_is_a_pause() -> None:
    limited = limit(window_s=100.0)
    limited.accept()
    assert delete(limited, 1000, 1000, now=1e6) == 1000
    assert delete(limited, 1000, 1000, now=1e6 + 99) == 1000
    assert delete(limited, 1000, 1000, now=1e6 + 300) == 500


def test_nothing_is_allowed_while_something_is_withheld() -> None:
    limited = limit()
    limited.withheld = {"/a"}
    assert delete(limited, 100, 1) == 0
    limited.withheld = ()
    limited.suspect(["/a"], 0.0)
    assert not limited.allows("/a", 100, 1.0)
    assert limited.allows("/b", 100, 1.0)
    assert limited.allows("/a", 100, 1000.0)
