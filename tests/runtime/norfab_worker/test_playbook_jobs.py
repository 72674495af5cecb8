"""POST and what follows it, as the specification and its readings have it for a worker."""

from __future__ import annotations

import pytest

from specwire.runtime.norfab.commands import Open, Response
from specwire.runtime.norfab.pendingcommits import StoreRecovered
from specwire.runtime.norfab.worker import actions
from specwire.runtime.norfab.worker.bodies import Outcome, Progress
from specwire.runtime.norfab.worker.events import Dropped, JobEnded, JobRefused, StoreFailed
from specwire.runtime.norfab.worker.limits import WorkerSettings
from specwire.runtime.norfab.worker.records import BegunRecord, DeletedRecord, JobRecord, ResultRecord
from tests.runtime.norfab_worker.laboratory import CLIENT, START, Lab, job, value

UUID = "4f1d0c6b9e8a4b5c8d7e6f5a4b3c2d1e"


# --- POST


def test_a_job_is_acknowledged_run_and_ended() -> None:
    """POST, 201, the task, 200 with the result under the worker's name; the client's address is sent back."""
    lab = Lab()
    lab.post(UUID, client=b"alice")
    assert lab.told(UUID) == [
        (201, {"worker": "w1", "uuid": UUID, "status": "ACCEPTED", "service": "svc"}),
    ]
    assert lab.started == [actions.Start(UUID, "add", job(), b"alice")]
    lab.now += 2.0
    lab.end(UUID, value(42))
    [entry] = lab.ends(UUID)
    assert entry == {
        "result": 42,
        "failed": False,
        "errors": [],
        "task": "w1:add",
        "messages": [],
        "juuid": UUID,
        "resources": [],
        "status": "completed",
        "task_started": entry["task_started"],
        "task_completed": entry["task_completed"],
        "service": "svc",
        "diff": None,
        "dry_run": False,
    }
    assert {command.client for command in lab.sent if isinstance(command, Response)} == {b"alice"}
    assert lab.reported(JobEnded) == [JobEnded(UUID, "add", 2.0, "")]


def test_nothing_is_acknowledged_before_it_is_durable() -> None:
    lab = Lab(commits=False)
    lab.post()
    assert lab.sent == [] and lab.started == []
    lab.commit()
    assert lab.statuses() == [201]


def test_a_result_is_durable_before_it_is_sent() -> None:
    lab = Lab(commits=False)
    lab.post()
    lab.commit()
    lab.end()
    assert lab.statuses() == [201]
    lab.commit()
    assert lab.statuses() == [201, 200]


def test_that_a_job_begins_is_durable_before_it_begins() -> None:
    lab = Lab(commits=False)
    lab.post("j1")
    lab.post("j2")
    assert lab.waiting[0].records[1:] == (BegunRecord(1),)  # one commit for both, where it begins at once
    lab.commit(1)
    assert lab.runs() == ["j1"]
    lab.commit()
    lab.end("j1")
    assert lab.runs() == ["j1"] and BegunRecord(2) in lab.waiting[1].records
    lab.commit()
    assert lab.runs() == ["j1", "j2"]


def test_a_place_that_was_reserved_is_given_back() -> None:
    lab = Lab(commits=False)
    lab.post("j1")
    lab.refuse()
    lab.post("j2")
    lab.post("j3")
    lab.refuse()
    lab.commit()
    lab.commit()
    assert lab.runs() == ["j3"]


def test_a_job_whose_beginning_cannot_be_kept_fails() -> None:
    lab = Lab(commits=False)
    lab.post("j0")
    lab.post("j1")
    lab.commit()
    lab.end("j0")
    lab.commit(1)
    lab.refuse("disk full")
    lab.commit()
    assert lab.runs() == ["j0"]
    assert lab.ends()[0]["errors"] == ["the worker cannot store that the job begins: disk full"]


def test_a_failed_task_is_200_that_says_so() -> None:
    lab = Lab()
    lab.post()
    lab.fail()
    assert lab.statuses() == [201, 200]
    assert (lab.ends()[0]["failed"], lab.ends()[0]["errors"]) == (True, ["boom"])


def test_one_job_at_a_time_in_the_order_of_arrival() -> None:
    """Workers will handle at most one request a time: that is the default."""
    lab = Lab()
    for number in range(4):
        lab.post(f"j{number}")
    assert lab.runs() == ["j0"]
    for number in range(4):
        lab.end(f"j{number}")
    assert lab.runs() == ["j0", "j1", "j2", "j3"]


def test_more_at_a_time_where_it_is_configured() -> None:
    lab = Lab(WorkerSettings(concurrency=3))
    for number in range(5):
        lab.post(f"j{number}")
    assert lab.runs() == ["j0", "j1", "j2"]
    lab.end("j1")
    assert lab.runs() == ["j0", "j1", "j2", "j3"]


@pytest.mark.parametrize("stage", ["queued", "running", "ended"])
def test_a_duplicate_is_acknowledged_again_and_never_run_again(stage: str) -> None:
    lab = Lab()
    if stage == "queued":
        lab.post("j0")
    lab.post()
    if stage == "ended":
        lab.end()
    runs = lab.runs()
    lab.take()
    lab.post()
    assert lab.statuses() == ([201, 200] if stage == "ended" else [201])
    assert lab.runs() == runs


def test_a_duplicate_that_comes_while_the_first_waits_for_the_disk() -> None:
    lab = Lab(commits=False)
    lab.post()
    lab.post()
    lab.commit()
    assert lab.statuses() == [201]
    assert lab.runs() == ["j1"]


def test_the_queue_is_bounded() -> None:
    lab = Lab(WorkerSettings(queue=3))
    for number in range(4):
        lab.post(f"j{number}")
    assert lab.statuses("j3") == [500]
    assert lab.ends("j3")[0]["errors"] == ["the worker has 3 unfinished jobs, and takes no more"]
    lab.end("j0")
    lab.post("j3")
    assert lab.statuses("j3")[-1] == 201


def test_the_queue_is_bounded_in_octets_but_one_job_fits_always() -> None:
    lab = Lab(WorkerSettings(queue_octets=100))
    lab.post("j0", job(args=["x" * 1000]))
    lab.post("j1")
    assert (lab.statuses("j0"), lab.statuses("j1")) == ([201], [500])


def test_a_disk_that_is_behind_refuses_jobs() -> None:
    lab = Lab(WorkerSettings(uncommitted=2), commits=False)
    for number in range(3):
        lab.post(f"j{number}")
    assert lab.ends("j2")[0]["errors"] == ["the worker's disk is behind"]


def test_a_job_that_cannot_be_kept_is_refused_and_may_come_again() -> None:
    lab = Lab(commits=False)
    lab.post()
    lab.refuse("disk full")
    assert lab.ends()[0]["errors"] == ["the worker cannot store the job: disk full"]
    assert lab.reported(StoreFailed) == [StoreFailed("disk full")]
    lab.take()
    lab.post()
    lab.commit()
    assert lab.statuses() == [201]


def test_a_result_that_cannot_be_stored_is_a_failure_that_is_stored() -> None:
    """The broker never gets a result that a restart would not know of."""
    lab = Lab(commits=False)
    lab.post()
    lab.commit()
    lab.take()
    lab.end("j1", value(3))
    lab.refuse("constraint failed")
    assert lab.sent == []
    lab.commit()
    assert lab.ends()[0]["errors"] == ["the worker cannot store the result: constraint failed"]
    assert len(lab.disk.results()) == 1


def test_if_not_even_the_failure_can_be_stored_the_broker_hears_500() -> None:
    lab = Lab(commits=False)
    lab.post()
    lab.commit()
    lab.take()
    lab.end("j1", value(3))
    lab.refuse("no such table")
    lab.refuse("no such table")
    assert lab.statuses() == [500]
    assert lab.waiting == []


def test_a_worker_whose_store_refuses_says_so_at_once() -> None:
    lab = Lab()
    lab.perform(lab.engine.store_refuses("database or disk is full", START))
    lab.post()
    assert lab.ends()[0]["errors"] == ["the worker cannot store the job: database or disk is full"]
    assert lab.reported(StoreFailed) == [
        StoreFailed("new jobs are refused, as the disk fails: database or disk is full")
    ]
    lab.perform(lab.engine.store_refuses("", START))
    assert lab.reported(StoreRecovered) == [StoreRecovered()]
    lab.post("j2")
    assert lab.runs() == ["j2"]


def test_only_a_new_job_and_a_deletion_may_be_refused_while_the_disk_fails() -> None:
    lab = Lab(commits=False)
    lab.post("j1")
    lab.post("j2")
    lab.commit()
    lab.end("j1")
    lab.delete("j2")
    lab.post("j3")
    kinds = [(type(commit.records[0]), commit.refusable) for commit in lab.waiting]
    assert kinds == [
        (ResultRecord, False),
        (BegunRecord, False),
        (DeletedRecord, True),
        (JobRecord, True),
    ]


def test_a_worker_that_stops_waits_for_a_failing_disk_for_so_long_only() -> None:
    lab = Lab(WorkerSettings(drain_s=5.0, disk_s=10.0), commits=False)
    lab.post()
    lab.commit()
    lab.end()
    lab.perform(lab.engine.stop(lab.now))
    lab.wait(14.0)
    assert lab.stopped is None
    lab.wait(2.0)
    assert lab.stopped is not None


@pytest.mark.parametrize("body", [b"", b"\x80", b"{", b"[]", b'{"task":5}', b"[" * 5000, b'{"args":{}}'])
def test_a_body_that_is_no_job_gets_an_error_reply(body: bytes) -> None:
    lab = Lab()
    lab.post(body=body)
    assert lab.statuses() == [400]
    assert lab.ends()[0]["failed"]
    lab.post("j2")
    assert lab.runs() == ["j2"]


@pytest.mark.parametrize("uuid", ["", "x" * 256, "a b", "ü"])
def test_a_uuid_that_is_none_is_dropped(uuid: str) -> None:
    lab = Lab()
    lab.post(uuid)
    lab.get(uuid)
    lab.delete(uuid)
    assert lab.sent == []
    assert len(lab.reported(Dropped)) == 3


def test_a_result_that_is_too_large_is_a_failure_that_says_so() -> None:
    lab = Lab(WorkerSettings(body_octets=1000))
    lab.post()
    lab.end("j1", value("x" * 2000))
    [entry] = lab.ends()
    assert entry["failed"] and "up to 1000 can be sent" in entry["errors"][0]


# --- progress


def test_progress_is_sent_and_repeated_in_the_result() -> None:
    lab = Lab(WorkerSettings(messages=2))
    lab.post()
    for number in range(3):
        lab.perform(lab.engine.progress("j1", Progress(message=f"step {number}"), lab.now))
    assert lab.events()[0] == {
        "worker": "w1",
        "service": "svc",
        "uuid": "j1",
        "event_type": "progress",
        "message": "step 0",
        "task": "add",
        "status": "running",
        "resource": [],
        "severity": "INFO",
        "timestamp": lab.events()[0]["timestamp"],
    }
    assert len(lab.events()) == 3
    lab.end("j1", Outcome(messages=("bye",)))
    assert lab.ends()[0]["messages"] == ["step 0", "step 1", "bye"]


def test_a_task_says_nothing_any_more_when_its_job_has_ended() -> None:
    lab = Lab()
    lab.post(timeout=1)
    lab.wait(2)
    lab.take()
    lab.perform(lab.engine.progress("j1", Progress(message="late"), lab.now))
    lab.perform(lab.engine.stream("j1", b"late", lab.now))
    lab.end()
    assert lab.sent == []
    lab.perform(lab.engine.progress("never", Progress(message="?"), lab.now))
    assert lab.sent == []


def test_a_broker_that_does_not_answer_open_is_told_that_there_is_a_result() -> None:
    """Clients of deployed brokers ask when they hear it; ours push what they have."""
    lab = Lab()
    lab.post()
    lab.end()
    assert lab.events() == []
    lab = Lab(registered=False)
    lab.post()
    lab.end()
    assert [event["event_type"] for event in lab.events()] == ["result_ready"]
    assert lab.statuses() == [201, 200]


def test_refusals_are_reported() -> None:
    lab = Lab()
    lab.post(body=b"nonsense")
    assert [report.uuid for report in lab.reported(JobRefused)] == ["j1"]


def test_an_answer_to_open_is_not_needed() -> None:
    lab = Lab(registered=False)
    lab.post(client=CLIENT)
    assert lab.statuses() == [201]
    lab.say(Open())
    assert lab.engine.connection.introduced
