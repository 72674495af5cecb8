"""``show_jobs`` of the broker's management."""

from __future__ import annotations

from typing import Any

import pytest

from specwire.runtime.norfab import listing
from specwire.runtime.norfab.access import Everyone
from tests.runtime.norfab.scripted import Lab


def filled() -> Lab:
    """Return a broker with a job that ended, one that runs, one that waits and one that was deleted."""
    lab = Lab()
    lab.ready("w1", "w2")
    lab.post("j1", user="ann", client="ann-1")
    lab.respond("w1", uuid="j1")
    lab.respond("w2", uuid="j1")
    lab.post("j2", target="w2", user="bob", client="bob-1")
    lab.post("j3", service="none", user="ann", client="ann-1")
    lab.post("j4", user="ann", client="ann-1")
    lab.delete("j4", user="ann", client="ann-1")
    lab.wait(2, alive=["w1", "w2"])
    return lab


def test_jobs_are_listed_the_newest_first() -> None:
    status, rows = filled().manage("show_jobs")
    assert status == 200
    assert [(row["uuid"], row["state"], row["workers"], row["answered"]) for row in rows] == [
        ("j3", "WAITING", [], []),
        ("j2", "RUNNING", ["w2"], []),
        ("j1", "ENDED", ["w1", "w2"], ["w1", "w2"]),
    ]
    assert rows[1] == {
        "uuid": "j2",
        "service": "svc",
        "task": "add",
        "user": "bob",
        "client": "bob-1",
        "target": "w2",
        "state": "RUNNING",
        "parts": 1,
        "workers": ["w2"],
        "answered": [],
        "age (s)": 2.0,
    }


@pytest.mark.parametrize(
    ("narrowed", "uuids"),
    [
        ({"service": "none"}, ["j3"]),
        ({"state": "open"}, ["j3", "j2"]),
        ({"state": "ended"}, ["j1"]),
        ({"uuid": "j2"}, ["j2"]),
        ({"limit": 2}, ["j3", "j2"]),
        ({"limit": -1}, ["j3", "j2", "j1"]),
        ({"limit": "all", "state": [], "service": None}, []),
    ],
)
def test_what_is_listed_can_be_narrowed(narrowed: dict[str, Any], uuids: list[str]) -> None:
    assert [row["uuid"] for row in filled().manage("show_jobs", **narrowed)[1]] == uuids


def test_a_user_is_told_of_the_jobs_that_he_may_see() -> None:
    class OwnOnly(Everyone):
        def may_see(self, user: str, owner: str) -> bool:
            return user == owner

    lab = Lab(access=OwnOnly())
    lab.post("j1", user="ann", client="ann-1")
    lab.post("j2", user="bob", client="bob-1")
    assert [row["uuid"] for row in lab.manage("show_jobs", user="ann")[1]] == ["j1"]


def test_rows_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "MAX_NAMES", 2)
    lab = Lab()
    lab.ready("w1", "w2", "w3")
    lab.post()
    ((row,),) = [lab.manage("show_jobs")[1]]
    assert (row["parts"], row["workers"]) == (3, ["w1", "w2"])
