"""The accounting log: one line for each thing that happened, whatever becomes of the disk, never too many."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from specwire.runtime.norfab.events import (
    Dropped,
    JobAccepted,
    JobDeleted,
    JobEnded,
    JobRedispatched,
    Refused,
    WorkerGone,
    WorkerReady,
)
from specwire.runtime.norfab.security.accounting import REFUSALS_PER_S, AccountingLog
from specwire.runtime.norfab.serve.events import Began, Ended, Managed, TurnedAway
from tests.runtime.norfab.scripted import Lab


class Log:
    """A log in a folder, of the jobs of an engine."""

    def __init__(self, folder: Path, **bounds: int) -> None:
        self.path = folder / "accounting.jsonl"
        self.faults: list[str] = []
        self.lab = Lab()
        self.log = AccountingLog(self.path, self.lab.engine.jobs.by_uuid.get, self.faults.append, **bounds)

    def lines(self) -> list[dict[str, Any]]:
        """Return what is in the file."""
        return [json.loads(line) for line in self.path.read_text().splitlines()]


def test_job_is_accounted_from_its_acceptance_to_its_end(tmp_path: Path) -> None:
    """Who ran what where with which outcome: the second line has it all."""
    scene = Log(tmp_path)
    scene.lab.ready("w1", "w2")
    scene.lab.post(user="ada")
    scene.lab.respond("w1", 200)
    scene.lab.respond("w2", 200, body=b'{"w2":{"result":null,"failed":true,"errors":["no"]}}')
    for event in scene.lab.happened:
        scene.log.note(event)
    scene.log.flush()
    ended = [line for line in scene.lines() if line["event"] == "ended"]
    assert [(line["worker"], line["outcome"]) for line in ended] == [("w1", "done"), ("w2", "failed")]
    for line in ended:
        assert (line["user"], line["client"], line["service"], line["task"]) == ("ada", "c1", "svc", "add")
    [accepted] = [line for line in scene.lines() if line["event"] == "accepted"]
    assert (accepted["uuid"], accepted["user"], accepted["workers"]) == ("j1", "ada", ["w1", "w2"])
    scene.log.close()


def test_every_event_that_matters_has_a_line(tmp_path: Path) -> None:
    """Names that are no text are escaped; a drop is no business of accounting."""
    scene = Log(tmp_path)
    for event in (
        Began(("tcp://x",), 0),
        WorkerReady("w1", "svc", again=False),
        JobAccepted("j", "ada", b"\xff\n", "svc", "add", ()),
        JobRedispatched("j", "w1", "w2", 2),
        JobEnded("j", "w2", 500, "was lost"),
        Refused(b"c", "no"),
        TurnedAway("a key"),
        Dropped(b"c", "malformed", "x"),
        WorkerGone("w1", "svc", "silent"),
        Managed(b"c", "ada", "mmi.service.broker", "shutdown", "all", allowed=False),
        JobDeleted("j", b"c", "ada"),
        Ended(restart=False, reason="over"),
    ):
        scene.log.note(event)
    scene.log.close()
    assert [line["event"] for line in scene.lines()] == [
        "broker began",
        "worker ready",
        "accepted",
        "redispatched",
        "ended",
        "refused",
        "turned away",
        "worker gone",
        "management",
        "deleted",
        "broker ended",
    ]
    assert scene.lines()[2]["client"] == "\\xff\n"
    assert scene.lines()[4]["cause"] == "was lost"
    assert scene.lines()[8]["allowed"] is False


def test_file_is_rotated_and_the_oldest_go(tmp_path: Path) -> None:
    """Each file stays near its bound, so many are kept, and the newest lines are there."""
    scene = Log(tmp_path, rotate_octets=2000, kept=3)
    for number in range(400):
        scene.log.note(WorkerReady(f"w{number}", "svc", again=False))
        scene.log.flush()
    scene.log.close()
    old = sorted(tmp_path.glob("accounting-*.jsonl"))
    assert len(old) == 3
    assert all(file.stat().st_size < 2200 for file in old)
    text = "".join(file.read_text() for file in [*old, *tmp_path.glob("accounting.jsonl")])
    assert '"w399"' in text
    assert '"w0"' not in text


def test_log_is_only_added_to(tmp_path: Path) -> None:
    """A later run goes on in the file, which is for its owner alone."""
    for _ in range(2):
        scene = Log(tmp_path)
        scene.log.note(Began((), 0))
        scene.log.close()
    assert len(scene.lines()) == 2
    assert scene.path.stat().st_mode & 0o077 == 0


def test_disk_that_takes_nothing_is_told_once_and_the_gap_later(tmp_path: Path) -> None:
    """The broker goes on; the first line that can be written says how many are missing."""
    scene = Log(tmp_path)
    scene.path.mkdir()
    for number in range(3):
        scene.log.note(WorkerReady(f"w{number}", "svc", again=False))
        scene.log.flush()
    assert len(scene.faults) == 1
    assert "accounting.jsonl" in scene.faults[0]
    scene.path.rmdir()
    scene.log.note(WorkerReady("w9", "svc", again=False))
    scene.log.close()
    assert [line.get("lines", line.get("worker")) for line in scene.lines()] == [3, "w9"]


def test_what_outsiders_cause_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A flood of refusals is counted, not written."""
    now = 100.0
    monkeypatch.setattr("specwire.runtime.norfab.security.accounting.time.monotonic", lambda: now)
    scene = Log(tmp_path)
    for _ in range(1000):
        scene.log.note(Refused(b"evil", "no"))
    now = 102.0
    scene.log.note(Refused(b"evil", "no"))
    scene.log.close()
    lines = scene.lines()
    assert len(lines) == REFUSALS_PER_S + 1
    assert lines[-1]["left out before"] == 1000 - REFUSALS_PER_S


def test_descriptor_is_closed(tmp_path: Path) -> None:
    """Nothing of a closed log stays open."""
    before = len(os.listdir("/proc/self/fd"))
    scene = Log(tmp_path)
    scene.log.note(Began((), 0))
    scene.log.close()
    assert len(os.listdir("/proc/self/fd")) == before
