"""How many files a subscriber deletes at once."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from specwire.runtime.filemq.deletion import DeletionLimit
from specwire.runtime.filemq.policy import InboxRules


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
        assert len(limited.undo()) == most


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
