"""What ends a job without its task, what is kept of those that ended, and how a worker itself ends."""

from __future__ import annotations

import pytest

from specwire.runtime.norfab.commands import Disconnect
from specwire.runtime.norfab.worker import actions
from specwire.runtime.norfab.worker.limits import WorkerSettings
from specwire.runtime.norfab.worker.records import ForgottenRecord
from tests.runtime.norfab_worker.laboratory import Lab, records_of, value

# --- time


def test_a_job_that_takes_too_long_ends_with_the_cause_and_is_cancelled() -> None:
    lab = Lab()
    lab.post(timeout=5)
    lab.wait(4.5)
    assert lab.statuses() == [201]
    lab.wait(1)
    [entry] = lab.ends()
    assert (entry["failed"], entry["status"]) == (True, "timeout")
    assert entry["errors"] == ["did not end within 5 s"]
    assert lab.of(actions.Cancel) == [actions.Cancel("j1", "did not end within 5 s")]


def test_a_task_has_a_limit_of_its_own_from_its_beginning() -> None:
    lab = Lab(time_limits={"quick": 2.0})
    lab.post("j0")
    lab.post("j1", task="quick")
    lab.wait(10)
    lab.end("j0")
    lab.wait(1.5)
    assert lab.ends("j1") == []
    lab.wait(1)
    assert lab.ends("j1")[0]["errors"] == ["did not end within 2 s"]


def test_a_job_that_does_not_begin_in_time_never_begins() -> None:
    lab = Lab()
    lab.post("j0")
    lab.post("j1", timeout=3)
    lab.wait(4)
    assert lab.ends("j1")[0]["errors"] == ["did not begin within 3 s"]
    lab.end("j0")
    assert lab.runs() == ["j0"]


@pytest.mark.parametrize("timeout", [0, -5, 1e300, None])
def test_a_timeout_that_makes_no_sense_is_the_default(timeout: float | None) -> None:
    lab = Lab(WorkerSettings(job_s=7, longest_job_s=9))
    lab.post(timeout=timeout)
    lab.wait(9.5)
    assert len(lab.ends()) == 1


def test_a_task_that_does_not_heed_loses_its_place_after_a_grace_period() -> None:
    lab = Lab()
    lab.post("j0", timeout=1)
    lab.post("j1")
    lab.wait(9)
    assert lab.runs() == ["j0"]
    lab.wait(3)
    assert lab.of(actions.Abandon) == [actions.Abandon("j0")]
    assert lab.runs() == ["j0", "j1"]
    lab.end("j0", value("late"))
    assert len(lab.ends("j0")) == 1
    assert lab.engine.execution.abandoned == set()


def test_places_are_given_up_a_few_times_only() -> None:
    lab = Lab(WorkerSettings(abandoned=2, grace_s=1))
    for number in range(4):
        lab.post(f"j{number}", timeout=1000)
        lab.delete(f"j{number}")
        lab.wait(2)
    assert lab.runs() == ["j0", "j1", "j2"]
    lab.wait(100)
    assert len(lab.of(actions.Abandon)) == 2
    lab.end("j0")
    lab.wait(1)
    assert len(lab.of(actions.Abandon)) == 3


def test_reminders_of_ended_jobs_do_not_pile_up() -> None:
    lab = Lab(WorkerSettings(kept_jobs=10))
    for number in range(3000):
        lab.post(f"j{number}")
        lab.end(f"j{number}")
        lab.done.clear()
    assert len(lab.engine.execution._reminders) < 2000


def test_deadlines_hold_when_reminders_were_thrown_away() -> None:
    lab = Lab(WorkerSettings(queue=5000))
    lab.post("long", timeout=5000)
    for number in range(300):
        lab.post(f"keep{number}", timeout=300 - number)
        for other in range(5):
            lab.post(f"drop{number}-{other}", timeout=(number * 7 + other * 13) % 400 + 1)
            lab.delete(f"drop{number}-{other}")
    assert len(lab.engine.execution._reminders) < 1800
    for second in range(1, 200):
        lab.now += 1.0
        lab.perform(lab.engine.tick(lab.now))
        ended = sum(1 for uuid in lab.engine.jobs.kept if uuid.startswith("keep"))
        assert ended == second


# --- retention


def test_results_are_kept_for_so_long() -> None:
    lab = Lab(WorkerSettings(kept_s=100))
    lab.post()
    lab.end()
    lab.wait(90, step=2)
    lab.take()
    lab.get()
    assert lab.statuses() == [200]
    lab.wait(20, step=2)
    lab.take()
    lab.get()
    assert lab.statuses() == [404]
    assert list(records_of(ForgottenRecord, disk=lab.disk)) == [ForgottenRecord(1)]


def test_so_many_results_are_kept() -> None:
    lab = Lab(WorkerSettings(kept_jobs=2))
    for number in range(3):
        lab.post(f"j{number}")
        lab.end(f"j{number}")
    lab.take()
    for number in range(3):
        lab.get(f"j{number}")
    assert [lab.statuses(f"j{number}") for number in range(3)] == [[404], [200], [200]]


def test_results_are_kept_up_to_a_size() -> None:
    lab = Lab(WorkerSettings(kept_octets=3000))
    for number in range(4):
        lab.post(f"j{number}")
        lab.end(f"j{number}", value("x" * 1000))
    assert list(lab.engine.jobs.kept) == ["j2", "j3"]
    assert lab.engine.jobs.kept_octets == sum(len(body) for body in lab.disk.results().values())


# --- the end of a worker


def test_a_worker_that_stops_finishes_what_runs_and_gives_the_rest_back() -> None:
    lab = Lab()
    for number in range(3):
        lab.post(f"j{number}")
    lab.take()
    lab.perform(lab.engine.stop(lab.now))
    assert lab.sent == [] and lab.stopped is None
    lab.post("j9")
    lab.wait(5)
    lab.end("j0", value(1))
    assert [entry["result"] for entry in lab.ends("j0")] == [1]
    assert lab.sent[-1] == Disconnect("svc")
    assert lab.stopped == actions.Stopped(False, "the worker stops")
    assert lab.runs() == ["j0"]
    assert lab.killed(registered=False).engine.jobs.open == 0


def test_what_does_not_end_when_the_worker_stops_fails_with_the_cause() -> None:
    lab = Lab(WorkerSettings(drain_s=10))
    lab.post()
    lab.perform(lab.engine.stop(lab.now))
    lab.wait(11)
    assert lab.ends()[0]["errors"] == ["the worker was stopped before the job ended"]
    assert lab.stopped is not None


def test_a_worker_stops_when_all_is_durable() -> None:
    lab = Lab(commits=False)
    lab.post()
    lab.commit()
    lab.perform(lab.engine.stop(lab.now))
    lab.end()
    assert lab.stopped is None
    lab.commit()
    assert lab.statuses() == [201, 200]
    assert lab.stopped is not None


def test_a_job_on_its_way_to_the_disk_when_the_worker_stops_is_given_back() -> None:
    lab = Lab(commits=False)
    lab.post()
    lab.perform(lab.engine.stop(lab.now))
    lab.commit()
    lab.commit()
    assert lab.statuses() == [] and lab.stopped is not None
    assert lab.killed(registered=False, commits=False).engine.jobs.by_uuid == {}


def test_an_idle_worker_without_a_broker_stops_at_once() -> None:
    lab = Lab()
    lab.perform(lab.engine.lost("gone", lab.now))
    lab.perform(lab.engine.stop(lab.now))
    assert lab.stopped is not None
    lab.wait(5)
    assert lab.connections == [0]
