"""GET, DELETE and PUT, as the specification and its readings have them for a worker."""

from __future__ import annotations

import pytest

from specwire.runtime.norfab.commands import Response
from specwire.runtime.norfab.worker import actions
from specwire.runtime.norfab.worker.events import Dropped
from specwire.runtime.norfab.worker.records import DeletedRecord
from tests.runtime.norfab_worker.laboratory import Lab, records_of, value

# --- GET


def test_get_tells_pending_started_and_the_result() -> None:
    lab = Lab()
    lab.post("j0")
    lab.post("j1")
    lab.take()
    lab.get("j0")
    lab.get("j1")
    assert lab.told("j0") == [(300, {"worker": "w1", "uuid": "j0", "status": "STARTED", "service": "svc"})]
    assert lab.told("j1")[0][1]["status"] == "PENDING"
    lab.end("j0", value(1))
    lab.take()
    lab.get("j0", client=b"someone else")
    assert [entry["result"] for entry in lab.ends("j0")] == [1]
    assert [command.client for command in lab.sent if isinstance(command, Response)] == [b"someone else"]


def test_get_of_a_uuid_never_seen_is_404() -> None:
    lab = Lab()
    lab.get("nix")
    [(status, body)] = lab.told("nix")
    assert (status, body["status"]) == (404, "UNKNOWN")


def test_get_while_the_job_waits_for_the_disk_has_no_answer_yet() -> None:
    """300 would say that the worker has it, and it may not survive the next moment."""
    lab = Lab(commits=False)
    lab.post()
    lab.get()
    assert lab.sent == []
    lab.commit()
    assert lab.statuses() == [201]


def test_a_result_that_cannot_be_read_is_an_explicit_failure() -> None:
    lab = Lab()
    lab.post()
    lab.end()
    lab.take()
    lab.disk.records.clear()
    lab.get()
    assert lab.ends()[0]["errors"] == ["the worker cannot read the result that it has stored"]


# --- DELETE


def test_delete_drops_a_job_that_waits() -> None:
    lab = Lab()
    lab.post("j0")
    lab.post("j1")
    lab.take()
    lab.delete("j1", client=b"boss")
    assert lab.told("j1") == [(200, {"worker": "w1", "uuid": "j1", "status": "DELETED", "service": "svc"})]
    lab.end("j0")
    assert lab.runs() == ["j0"]
    assert list(records_of(DeletedRecord, disk=lab.disk))


def test_delete_cancels_a_job_that_runs() -> None:
    """Cooperatively: the task is told, and its place is taken when it has ended."""
    lab = Lab()
    lab.post("j0")
    lab.post("j1")
    lab.take()
    lab.delete("j0")
    assert lab.of(actions.Cancel) == [actions.Cancel("j0", "the job was deleted")]
    assert lab.statuses("j0") == [200]
    assert lab.runs() == ["j0"]
    lab.end("j0")
    assert lab.ends("j0") == []
    assert lab.runs() == ["j0", "j1"]


def test_delete_purges_a_job_that_has_ended() -> None:
    lab = Lab()
    lab.post()
    lab.end()
    lab.take()
    lab.delete()
    assert lab.statuses() == [200]
    assert lab.engine.jobs.kept_octets == 0
    lab.take()
    lab.get()
    assert lab.ends()[0]["errors"] == ["the job was deleted"]


def test_delete_is_answered_again_and_400_for_a_uuid_never_seen() -> None:
    lab = Lab()
    lab.post()
    lab.end()
    lab.take()
    lab.delete()
    lab.delete()
    lab.delete("nix")
    assert lab.statuses() == [200, 200]
    assert lab.statuses("nix") == [400]


def test_delete_is_durable_before_it_is_answered() -> None:
    """And before it has any effect."""
    lab = Lab(commits=False)
    lab.post()
    lab.commit()
    lab.take()
    lab.delete()
    lab.get()
    assert lab.statuses() == [300]
    assert lab.of(actions.Cancel) == []
    lab.commit()
    assert lab.statuses() == [300, 200]
    assert lab.of(actions.Cancel) == [actions.Cancel("j1", "the job was deleted")]


def test_delete_of_a_job_that_is_not_durable_yet_waits_for_that() -> None:
    lab = Lab(commits=False)
    lab.post()
    lab.delete()
    assert lab.waiting[1].records == ()
    lab.commit()
    assert lab.statuses() == [201]
    lab.commit()
    assert lab.statuses() == [201, 200]
    lab.end()
    assert lab.ends() == []


def test_delete_of_a_job_that_could_not_be_stored_is_400() -> None:
    lab = Lab(commits=False)
    lab.post()
    lab.delete()
    lab.refuse()
    lab.commit()
    assert lab.statuses() == [500, 400]
    assert lab.disk.records == []


def test_two_deletions_at_a_time_of_which_one_fails() -> None:
    lab = Lab()
    lab.post()
    lab.take()
    lab.commits = False
    lab.delete()
    lab.delete()
    lab.end()
    lab.refuse()
    lab.commit()
    assert lab.statuses() == [500, 200]
    assert lab.killed().engine.jobs.by_uuid["j1"].deleted


def test_a_held_job_that_is_deleted_while_it_is_released() -> None:
    """It has another number by then, under which it must not come back."""
    lab = Lab()
    lab.post("j0")
    lab.post("j1")
    lab = lab.killed()
    lab.commits = False
    lab.take()
    lab.delete("j1")
    lab.get("j1")
    while lab.waiting:
        lab.commit(1)
    assert lab.statuses("j1") == [300, 200]
    assert lab.killed().engine.jobs.by_uuid["j1"].deleted


def test_a_job_that_is_given_back_while_it_is_deleted() -> None:
    lab = Lab()
    lab.post("j0")
    lab.post("j1")
    lab.take()
    lab.commits = False
    lab.delete("j1")
    lab.perform(lab.engine.stop(lab.now))
    lab.commit()
    assert lab.statuses("j1") == [200]
    assert list(lab.engine.jobs.by_uuid) == ["j0"]
    assert list(lab.killed().engine.jobs.by_uuid) == ["j0"]


def test_a_deletion_that_cannot_be_stored_is_500_and_leaves_the_result() -> None:
    lab = Lab()
    lab.post()
    lab.end()
    lab.take()
    lab.commits = False
    lab.delete()
    assert lab.waiting[0].refusable
    lab.refuse()
    assert lab.statuses() == [500]
    lab.get()
    assert lab.ends()[0]["result"] == 5


@pytest.mark.parametrize("ends", [False, True])
def test_a_job_whose_deletion_cannot_be_stored_still_ends(ends: bool) -> None:
    """Also if its task ended while that was tried."""
    lab = Lab(commits=False)
    lab.post()
    lab.commit()
    lab.delete()
    if ends:
        lab.end("j1", value(3))
    lab.refuse()
    if not ends:
        lab.end("j1", value(3))
    lab.commit()
    assert lab.statuses() == [201, 500, 200]
    assert lab.ends()[0]["result"] == 3


def test_a_job_whose_deletion_cannot_be_stored_begins_in_its_turn() -> None:
    lab = Lab()
    lab.post("j0")
    lab.post("j1")
    lab.commits = False
    lab.delete("j1")
    lab.refuse()
    lab.end("j0")
    lab.commit()
    assert lab.runs() == ["j0", "j1"]


def test_a_result_beside_a_deletion_does_not_bring_the_job_back() -> None:
    lab = Lab(commits=False)
    lab.post()
    lab.commit()
    lab.delete()
    lab.end("j1", value(3))
    lab.commit()
    assert lab.statuses() == [201, 200]
    assert lab.ends() == []
    assert lab.killed().engine.jobs.by_uuid["j1"].deleted


def test_a_deleted_job_never_runs_again() -> None:
    lab = Lab()
    lab.post()
    lab.delete()
    lab.take()
    lab.post()
    assert lab.statuses() == [400]
    assert lab.ends()[0]["errors"] == ["the job was deleted"]
    assert lab.runs() == ["j1"]
    later = lab.killed()
    later.post()
    assert later.runs() == []


# --- PUT


def test_put_reaches_the_task_that_runs_and_no_other() -> None:
    lab = Lab()
    lab.post("j0")
    lab.post("j1")
    lab.put("j0", b"yes")
    lab.put("j1", b"no")
    lab.put("j9", b"no")
    assert lab.of(actions.Input) == [actions.Input("j0", b"yes")]
    assert len(lab.reported(Dropped)) == 2
