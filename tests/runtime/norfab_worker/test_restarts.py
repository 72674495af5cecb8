"""What follows when a worker is killed, at any moment: every stored job ends, and none runs twice."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from specwire.runtime.norfab.commands import Open
from specwire.runtime.norfab.worker import actions
from specwire.runtime.norfab.worker.limits import WorkerSettings
from specwire.runtime.norfab.worker.records import ForgottenRecord
from specwire.runtime.norfab.worker.restoring import INTERRUPTED, NOT_WANTED
from tests.runtime.norfab_worker.laboratory import START, Disk, Lab, value


def test_seven_jobs_of_a_worker_that_is_killed() -> None:
    """There all seven stay STARTED for ever. Here the one that ran has failed, the others run when they are asked for."""
    lab = Lab()
    for number in range(7):
        lab.post(f"j{number}")
    assert lab.runs() == ["j0"]
    lab = lab.killed()
    assert lab.runs() == []
    for number in range(7):
        lab.get(f"j{number}")
    assert lab.ends("j0")[0]["errors"] == [INTERRUPTED]
    for number in range(1, 7):
        assert lab.statuses(f"j{number}") == [300]
        lab.end(f"j{number}", value(number))
    assert lab.runs() == [f"j{number}" for number in range(1, 7)]
    assert [lab.ends(f"j{number}")[0]["result"] for number in range(1, 7)] == [1, 2, 3, 4, 5, 6]


def test_a_job_that_had_not_begun_and_is_not_asked_for_ends_with_the_cause() -> None:
    """The broker has given it to another, or has told its loss: to run it now would be to run it twice."""
    lab = Lab()
    lab.post("j0")
    lab.post("j1")
    lab = lab.killed()
    lab.wait(4.5)
    assert lab.told("j1") == []
    lab.wait(1.0)
    assert lab.runs() == []
    assert lab.ends("j1")[0]["errors"] == [NOT_WANTED]
    assert lab.ends("j0")[0]["errors"] == [INTERRUPTED]


def test_a_job_is_held_for_as_long_as_no_broker_is_there() -> None:
    lab = Lab()
    lab.post("j0")
    lab.post("j1")
    lab = lab.killed(registered=False)
    lab.perform(lab.engine.lost("refused", lab.now))
    for _ in range(600):
        lab.wait(0.1, alive=False)
        if lab.connected:
            lab.perform(lab.engine.lost("refused", lab.now))
    lab.wait(2, alive=False)
    lab.say(Open())
    lab.get("j1")
    assert lab.runs() == ["j1"]


def test_a_held_job_that_is_posted_again_runs_once() -> None:
    lab = Lab()
    lab.post("j0")
    lab.post("j1")
    lab = lab.killed()
    lab.post("j1")
    lab.get("j1")
    assert lab.statuses("j1") == [201, 300]
    assert lab.runs() == ["j1"]


def test_results_outlive_the_worker() -> None:
    lab = Lab()
    lab.post(client=b"alice")
    lab.end("j1", value("kept"))
    lab = lab.killed()
    lab.get()
    lab.post()
    assert [entry["result"] for entry in lab.ends()] == ["kept", "kept"]
    assert lab.runs() == []


def test_an_interrupted_job_fails_once_and_the_failure_outlives_the_next_kill() -> None:
    lab = Lab()
    lab.post()
    lab = lab.killed().killed()
    lab.get()
    assert lab.ends()[0]["errors"] == [INTERRUPTED]
    assert len(lab.disk.results()) == 1


def test_what_is_the_workers_own_fault_is_500_where_the_broker_can_give_it_to_another() -> None:
    """Deployed brokers, which do not answer OPEN, are told 200: their clients take all else for the end of all parts."""
    lab = Lab()
    lab.post()
    lab = lab.killed()
    lab.get()
    assert lab.statuses() == [500]
    lab = lab.killed(registered=False)
    lab.get()
    assert lab.statuses() == [200]
    assert lab.ends()[0]["errors"] == [INTERRUPTED]


def test_a_job_that_was_not_durable_was_never_here() -> None:
    lab = Lab(commits=False)
    lab.post()
    lab = lab.killed()
    lab.get()
    assert lab.statuses() == [404]
    lab.post()
    assert lab.runs() == ["j1"]


def test_numbers_go_on_after_a_restart() -> None:
    """Else a new job would count as begun, because an older one with its number had."""
    lab = Lab()
    for number in range(3):
        lab.post(f"j{number}")
        lab.end(f"j{number}")
    lab = lab.killed()
    lab.post("new")
    lab.post("newer")
    lab = lab.killed()
    lab.get("newer")
    assert lab.runs() == ["newer"]


def test_jobs_may_be_asked_for_in_any_order() -> None:
    """That a later one begins does not make an earlier one count as begun."""
    lab = Lab()
    for number in range(4):
        lab.post(f"j{number}")
    lab = lab.killed()
    lab.get("j3")
    assert lab.runs() == ["j3"]
    lab = lab.killed()
    lab.get("j1")
    lab.get("j3")
    assert lab.runs() == ["j1"]
    assert lab.ends("j3")[0]["errors"] == [INTERRUPTED]


def test_a_held_job_that_cannot_be_renumbered_waits_for_the_next_question() -> None:
    lab = Lab()
    lab.post("j0")
    lab.post("j1")
    lab = lab.killed()
    lab.commits = False
    lab.get("j1")
    while lab.waiting[0].records[0].__class__ is not ForgottenRecord:
        lab.commit(1)
    lab.refuse()
    assert lab.runs() == []
    lab.get("j1")
    lab.commit()
    lab.commit()
    assert lab.runs() == ["j1"]


def test_a_restart_that_management_asks_for_keeps_what_has_not_begun() -> None:
    lab = Lab()
    lab.post("j0")
    lab.post("j1")
    lab.manage("restart")
    lab.end("j0")
    assert lab.stopped == actions.Stopped(True, "management said restart")
    assert lab.connected is False
    lab = lab.killed()
    lab.get("j1")
    assert lab.runs() == ["j1"]


def test_retention_counts_from_the_end_also_after_a_restart() -> None:
    lab = Lab(WorkerSettings(kept_s=100))
    lab.post()
    lab.end()
    lab.wait(50, step=1)
    lab = lab.killed()
    lab.wait(40, step=1)
    assert list(lab.engine.jobs.kept) == ["j1"]
    lab.wait(20, step=1)
    assert list(lab.engine.jobs.kept) == []


class Fate:
    """A worker among kills: what it was given, what it ran, what it said."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.settings = WorkerSettings(concurrency=self.random.randint(1, 3), grace_s=1.0)
        self.lab = Lab(self.settings, commits=False)
        self.begun: Counter[str] = Counter()
        self.seen = 0
        self.posted: list[str] = []
        self.acknowledged: set[str] = set()
        self.results: dict[str, object] = {}
        self.kills = 0

    def note(self) -> None:
        """Note what the worker did since."""
        for start in self.lab.started[self.seen :]:
            self.begun[start.uuid] += 1
        self.seen = len(self.lab.started)
        for uuid in self.posted:
            for status, body in self.lab.told(uuid):
                if status == 201:
                    self.acknowledged.add(uuid)
                elif status in (200, 500):
                    entry = body["w1"]
                    said = (entry["result"], tuple(entry["errors"]))
                    assert self.results.setdefault(uuid, said) == said, "two ends of one job"
                    assert entry["errors"] or not entry["failed"]
        self.lab.take()

    def step(self) -> None:
        """Let something happen."""
        lab, chance = self.lab, self.random.random()
        if chance < 0.03:
            self.kill()
        elif chance < 0.25:
            uuid = f"j{len(self.posted)}"
            self.posted.append(uuid)
            lab.post(uuid)
        elif chance < 0.3 and self.posted:
            lab.post(self.random.choice(self.posted))
        elif chance < 0.4 and self.posted:
            lab.get(self.random.choice(self.posted))
        elif chance < 0.65:
            lab.commit(self.random.randint(1, 4))
        elif chance < 0.9:
            running = [
                uuid for uuid, found in lab.engine.execution.running.items() if found.began is not None
            ]
            if running:
                uuid = self.random.choice(running)
                lab.end(uuid, value(uuid))
        elif chance < 0.93:
            lab.perform(lab.engine.lost("net", lab.now))
        else:
            lab.wait(0.5, step=0.25)
            self.note()
            if lab.connected and not lab.engine.connection.registered:
                lab.say(Open())
        self.note()

    def kill(self) -> None:
        """kill -9, and a new worker."""
        self.kills += 1
        self.lab = Lab(
            self.settings,
            disk=self.lab.disk,
            now=self.lab.now + 1,
            commits=False,
        )
        self.seen = 0

    def settle(self) -> None:
        """Nobody is killed any more, and the broker asks for what it was told of."""
        lab = self.lab
        for _ in range(400):
            if lab.connected and not lab.engine.connection.registered:
                lab.say(Open())
            for uuid in self.acknowledged - set(self.results):
                lab.get(uuid)
            lab.commit()
            for uuid in list(lab.engine.execution.running):
                lab.end(uuid, value(uuid))
            lab.commit()
            self.note()
            lab.wait(0.2)
            if self.acknowledged <= set(self.results):
                return


@pytest.mark.parametrize("seed", range(80))
def test_under_kills_every_acknowledged_job_ends_and_none_runs_twice(seed: int) -> None:
    fate = Fate(seed)
    for _ in range(400):
        fate.step()
    fate.settle()
    assert fate.kills
    assert set(fate.begun.values()) <= {1}
    assert fate.acknowledged <= set(fate.results)
    for uuid, said in fate.results.items():
        assert said in ((uuid, ()), (None, (INTERRUPTED,)), (None, (NOT_WANTED,))), said
        # A job counts as begun from when that is durable, a moment before it begins.
        assert fate.begun[uuid] == 1 or said[0] is None, uuid
        assert not (fate.begun[uuid] and said == (None, (NOT_WANTED,)))
    assert any(said == (uuid, ()) for uuid, said in fate.results.items())


def test_an_empty_disk_makes_an_empty_worker() -> None:
    lab = Lab(disk=Disk(), now=START)
    assert lab.engine.jobs.by_uuid == {}
