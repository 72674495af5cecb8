"""After a restart jobs for all workers wait until those are back that were here before, or would be lost."""

from __future__ import annotations

from specwire.runtime.norfab.commands import Disconnect
from specwire.runtime.norfab.limits import Settings
from specwire.runtime.norfab.records import ForgottenRecord, WorkerRecord
from tests.runtime.norfab.scripted import Lab, job

EXPIRY_S = Settings().expiry_s


def again(lab: Lab) -> Lab:
    """Return a new broker with what the other one stored when it was killed."""
    return Lab(records=list(lab.records), now=lab.now)


def test_a_job_for_all_waits_until_all_are_back() -> None:
    lab = Lab()
    lab.ready("w1", "w2", "w3")
    lab = again(lab)
    lab.ready("w1")
    lab.post()
    assert lab.statuses() == [300]
    lab.ready("w2")
    assert [lab.posts(name) for name in ("w1", "w2")] == [[], []]
    lab.ready("w3")
    ((status, body),) = lab.told()
    assert (status, sorted(body["workers"])) == (202, ["w1", "w2", "w3"])
    assert [lab.posts(name) for name in ("w1", "w2", "w3")] == [["j1"]] * 3


def test_who_does_not_come_back_is_not_waited_for_longer_than_a_silent_worker() -> None:
    lab = Lab()
    lab.ready("w1", "w2")
    lab = again(lab)
    lab.ready("w1")
    lab.post()
    lab.wait(EXPIRY_S - 0.5, alive=["w1"])
    assert lab.posts("w1") == []
    lab.wait(1, alive=["w1"])
    assert lab.posts("w1") == ["j1"]
    assert lab.told()[-1][1]["workers"] == ["w1"]
    lab = again(lab)
    lab.ready("w1")
    lab.post("j2")
    assert lab.posts("w1") == ["j2"], "the store was not told that w2 did not come back"


def test_a_job_that_was_posted_before_the_restart_waits_too() -> None:
    lab = Lab(commits=False)
    lab.ready("w1", "w2")
    lab.commit()
    lab = again(lab)
    lab.post("j1")
    lab = again(lab)
    lab.ready("w2")
    assert lab.posts("w2") == []
    lab.ready("w1")
    assert (lab.posts("w1"), lab.posts("w2")) == (["j1"], ["j1"])


def test_other_jobs_do_not_wait() -> None:
    lab = Lab()
    lab.ready("w1", "w2")
    lab.ready("x1", service="other")
    lab = again(lab)
    lab.ready("w1")
    lab.ready("x1", service="other")
    lab.post("j1", target="any")
    lab.post("j2", target="w1")
    lab.post("j3", target="all", service="other")
    assert lab.posts("w1") == ["j1", "j2"]
    assert lab.posts("x1") == ["j3"]


def test_who_left_or_was_lost_before_is_not_waited_for() -> None:
    lab = Lab()
    lab.ready("w1", "w2", "w3")
    lab.say("w2", "worker", Disconnect("svc"))
    lab.wait(EXPIRY_S, alive=["w1"])
    lab = again(lab)
    lab.ready("w1")
    lab.post()
    assert lab.posts("w1") == ["j1"]


def test_a_worker_that_comes_back_for_another_service_is_not_waited_for() -> None:
    lab = Lab()
    lab.ready("w1", "w2")
    lab = again(lab)
    lab.ready("w1")
    lab.post()
    lab.ready("w2", service="other")
    assert lab.posts("w1") == ["j1"]


def test_workers_that_were_told_to_register_again_are_waited_for() -> None:
    lab = Lab()
    lab.ready("w1", "w2")
    lab.manage("disconnect")
    lab.ready("w1")
    lab.post()
    assert lab.posts("w1") == []
    lab.ready("w2")
    assert (lab.posts("w1"), lab.posts("w2")) == (["j1"], ["j1"])


def test_a_job_about_a_resource_waits_until_it_is_known_who_manages_it() -> None:
    lab = Lab()
    lab.ready("w1", "w2")
    lab = again(lab)
    lab.announce("w1", "r1")
    lab.ready("w1")
    lab.post(body=job(resources=["r1"]))
    assert lab.posts("w1") == []
    lab.ready("w2")
    assert (lab.posts("w1"), lab.posts("w2")) == (["j1"], [])


def test_a_worker_is_stored_once_and_forgotten_once() -> None:
    lab = Lab()
    lab.ready("w1", "w1", "w1")
    lab.say("w1", "worker", Disconnect("svc"))
    assert lab.records == [WorkerRecord("worker w1", "w1", "svc"), ForgottenRecord("worker w1", "left")]


def test_a_job_that_waits_in_vain_ends_with_408() -> None:
    lab = Lab(Settings(queue_s=5.0))
    lab.ready("w1", "w2")
    lab = Lab(Settings(queue_s=5.0), records=list(lab.records), now=lab.now)
    lab.ready("w1")
    lab.post()
    lab.wait(5, alive=["w1"])
    assert lab.statuses() == [300, 408]
    lab.wait(20, alive=["w1"])
    assert lab.posts("w1") == []
