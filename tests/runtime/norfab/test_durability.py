"""Nothing lost: brokers and workers killed between any two messages, and stores that lose what was not committed."""

from __future__ import annotations

import json

import pytest

from specwire.runtime.norfab.commands import Delete, Event, Get, Post, Response
from specwire.runtime.norfab.events import StoreAccepts, StoreRefuses
from specwire.runtime.norfab.limits import Settings
from specwire.runtime.norfab.records import (
    AssignedRecord,
    DeletedRecord,
    ForgottenRecord,
    JobRecord,
    ResultRecord,
    WorkerRecord,
)
from tests.runtime.norfab.scripted import START, Lab, result
from tests.runtime.norfab.world import World


def again(lab: Lab, settings: Settings | None = None) -> Lab:
    """Return a new broker with what the killed one had on disk."""
    return Lab(settings, records=lab.records, now=lab.now, commits=lab.commits)


def test_nothing_is_acknowledged_or_sent_before_it_is_durable() -> None:
    lab = Lab(commits=False)
    lab.ready("w1")
    lab.post()
    assert lab.take("c1") == lab.take("w1") == []
    lab.commit()
    assert (lab.statuses(), lab.posts("w1")) == ([202], ["j1"])
    lab.respond("w1")
    assert lab.take("c1") == []
    lab.get()
    assert lab.statuses() == [202, 300]
    lab.commit()
    assert lab.statuses() == [200]


def test_a_job_for_any_is_not_sent_before_it_is_durable_who_has_it() -> None:
    lab = Lab(commits=False)
    lab.post(target="any")
    lab.ready("w1")
    lab.commit(1)
    assert (lab.statuses(), lab.posts("w1")) == ([300], [])
    lab.commit()
    assert (lab.statuses(), lab.posts("w1")) == ([202], ["j1"])


def test_a_worker_that_registers_again_does_not_get_a_job_before_it_is_durable() -> None:
    lab = Lab(commits=False)
    lab.ready("w1")
    lab.post(target="any")
    lab.ready("w1")
    assert lab.take("w1") == []
    lab.commit()
    assert lab.posts("w1") == ["j1"]


def test_a_worker_has_no_say_in_a_job_that_it_was_not_sent_yet() -> None:
    lab = Lab(commits=False)
    lab.ready("w1")
    lab.post()
    lab.respond("w1")
    lab.tell("w1", "progress")
    lab.commit()
    assert (lab.statuses(), lab.posts("w1")) == ([202], ["j1"])


def test_a_job_that_moves_on_before_it_is_durable_is_sent_once() -> None:
    lab = Lab(commits=False)
    lab.ready("w1", "w2")
    lab.post(target="any")
    lab.perform(lab.engine.unreachable(b"w1", "worker", lab.now))
    lab.commit(1)
    assert lab.posts("w1") == lab.posts("w2") == []
    lab.commit()
    assert (lab.posts("w1"), lab.posts("w2")) == ([], ["j1"])


def test_a_duplicate_that_is_faster_than_the_disk_is_acknowledged_with_the_first() -> None:
    lab = Lab(commits=False)
    lab.ready("w1")
    lab.post()
    lab.post()
    lab.post(client="c2")
    assert (lab.take("c1"), lab.take("c2")) == ([], [])
    lab.commit()
    assert (lab.statuses(), lab.statuses("c2"), lab.posts("w1")) == ([202], [202], ["j1"])


def test_a_restarted_broker_asks_the_worker_and_does_not_send_again() -> None:
    lab = Lab()
    lab.ready("w1")
    lab.post()
    lab = again(lab)
    assert lab.sent == []
    lab.ready("w1")
    assert lab.take("w1") == [Get("j1", client=b"c1")]
    lab.respond("w1")
    assert lab.told() == [(200, json.loads(result("w1")))]


@pytest.mark.parametrize("target", ["all", "any", "w1"])
def test_a_job_that_did_not_reach_its_worker_is_sent_again_and_says_so(target: str) -> None:
    lab = Lab()
    lab.ready("w1")
    lab.post(target=target)
    lab = again(lab)
    lab.ready("w1")
    lab.take("w1")
    lab.respond("w1", 404)
    assert lab.posts("w1") == ["j1"]
    lab.respond("w1")
    assert lab.told()[-1][1]["w1"]["attempt"] == 2


@pytest.mark.parametrize("target", ["all", "any", "w1"])
def test_restarts_of_the_broker_do_not_exhaust_the_attempts_of_a_job(target: str) -> None:
    """Each broker sends the job and stops before the worker receives it: four times, with three attempts allowed."""
    lab = Lab()
    lab.ready("w1")
    lab.post(target=target)
    for _ in range(4):
        lab = again(lab)
        lab.ready("w1")
        lab.take("w1")
        lab.respond("w1", 404)
        assert lab.posts("w1") == ["j1"]
    lab.respond("w1")
    status, body = lab.told()[-1]
    assert (status, body["w1"]["attempt"]) == (200, 5)


def test_a_worker_that_does_not_come_back_is_lost() -> None:
    lab = Lab()
    lab.ready("w1")
    lab.post("j1", target="w1")
    lab.post("j2", target="any")
    lab = again(lab)
    lab.ready("w2")
    lab.wait(15, alive=["w2"])
    assert lab.posts("w2") == ["j2"]
    assert [body["error"] for status, body in lab.told() if status == 500] == ["worker w1 does not come back"]


def test_results_deletions_and_waiting_jobs_survive() -> None:
    lab = Lab()
    lab.ready("w1")
    for uuid in ("done", "gone"):
        lab.post(uuid)
        lab.respond("w1", uuid=uuid)
    lab.delete("gone")
    lab.post("waits", service="later", target="any")
    lab = again(again(lab))
    lab.get("done")
    assert lab.statuses() == [202, 200]
    lab.get("gone")
    lab.post("gone")
    lab.delete("gone")
    assert lab.statuses() == [400, 400, 200]
    lab.ready("w7", service="later")
    assert (lab.statuses(), lab.posts("w7")) == ([202], ["waits"])


def test_a_part_for_a_worker_that_was_missing_still_waits_for_it() -> None:
    lab = Lab()
    lab.ready("w1")
    lab.post(target="w1,w9")
    lab = again(lab)
    lab.ready("w9")
    assert lab.posts("w9") == ["j1"]


def test_an_end_without_any_worker_survives() -> None:
    lab = Lab()
    lab.post()
    lab.wait(60)
    lab = again(lab)
    lab.get()
    assert lab.statuses() == [408]


def test_28_the_store_moved_to_another_broker_goes_on_there() -> None:
    lab = Lab()
    lab.ready("w1", "w2")
    lab.post(target="any")
    lab.respond("w1", 201)
    elsewhere = Lab(records=lab.records, now=lab.now + 3600)
    elsewhere.ready("w1", "w2")
    elsewhere.respond("w1")
    elsewhere.get()
    assert elsewhere.statuses() == [200, 202, 200]
    assert elsewhere.posts("w2") == []


def test_a_worker_that_has_not_looked_at_its_jobs_yet_is_not_believed() -> None:
    """Deployed workers read jobs and questions in two threads: an early 404 is no loss, a late one is."""
    lab = Lab()
    lab.ready("w1")
    lab.post()
    lab.take("w1")
    lab.respond("w1", 404)
    assert lab.take("w1") == []
    lab.wait(5, alive=["w1"])
    lab.take("w1")
    lab.respond("w1", 404)
    assert lab.posts("w1") == ["j1"]


def test_a_worker_that_accepted_a_job_and_forgot_it_has_lost_it() -> None:
    lab = Lab()
    lab.ready("w1", "w2")
    lab.post("named", target="w1")
    lab.respond("w1", 201, "named")
    lab.take("c1")
    lab.respond("w1", 404, "named")
    ((status, body),) = lab.told()
    assert (status, body["error"]) == (500, "worker w1 does not have the job any more")


def test_a_client_that_was_away_gets_everything_when_it_asks() -> None:
    lab = Lab()
    lab.ready("w1", "w2")
    lab.post(client="before")
    lab.respond("w1")
    lab.respond("w2")
    lab.sent.clear()
    lab.get(client="after")
    assert lab.statuses("after") == [202, 200, 200]


def test_a_job_only_workers_know_is_asked_of_them() -> None:
    """The broker's store is new: any client that knows the uuid gets what the workers have."""
    lab = Lab()
    lab.ready("w1", "w2")
    lab.get()
    assert lab.take("w1") == lab.take("w2") == [Get("j1", client=b"c1")]
    lab.respond("w1", 404)
    lab.respond("w2")
    assert lab.statuses() == [202, 200]
    lab.get("j2")
    lab.respond("w1", 404, "j2")
    lab.wait(20, alive=["w1"])
    assert lab.statuses() == [202, 404]
    assert len(lab.engine.inquiries) == 0


def test_retention_by_number_age_and_size() -> None:
    def filled(settings: Settings) -> Lab:
        lab = Lab(settings)
        lab.ready("w1")
        for number in range(5):
            lab.post(f"j{number}")
            lab.respond("w1", uuid=f"j{number}")
        return lab

    lab = filled(Settings(kept_jobs=2))
    assert list(lab.engine.jobs.by_uuid) == ["j3", "j4"]
    assert list(again(lab).engine.jobs.by_uuid) == ["j3", "j4"]
    size = len(result("w1"))
    assert list(filled(Settings(kept_octets=3 * size)).engine.jobs.by_uuid) == ["j2", "j3", "j4"]
    lab = filled(Settings(kept_s=100))
    lab.now += 100
    lab.wait(1, alive=["w1"])
    assert not lab.engine.jobs.by_uuid
    assert [r.reason for r in lab.records if isinstance(r, ForgottenRecord)] == ["age"] * 5


def test_retention_by_parts() -> None:
    lab = Lab(Settings(kept_parts=5))
    lab.ready("w1", "w2")
    for number in range(4):
        lab.post(f"j{number}")
        for worker in ("w1", "w2"):
            lab.respond(worker, uuid=f"j{number}")
    assert list(lab.engine.jobs.by_uuid) == ["j2", "j3"]


def test_a_result_that_cannot_be_stored_is_a_failure_that_is_stored() -> None:
    """The client never gets a result that a restart would not know of."""
    lab = Lab(commits=False)
    lab.ready("w1")
    lab.post()
    lab.commit()
    lab.take("c1")
    lab.respond("w1")
    lab.perform(lab.engine.not_stored(lab.waiting.pop().ticket, "constraint failed", START))
    assert lab.statuses() == [], "the failure has to be durable first"
    lab.commit()
    ((status, body),) = lab.told()
    assert (status, body["error"]) == (500, "the broker cannot store the result: constraint failed")
    record = lab.records[-1]
    assert isinstance(record, ResultRecord)
    assert (record.status, json.loads(record.body)) == (500, body)
    assert lab.engine.jobs.open == 0


def test_where_not_even_the_failure_can_be_stored_the_client_hears_500() -> None:
    lab = Lab(commits=False)
    lab.ready("w1")
    lab.post()
    lab.commit()
    lab.take("c1")
    lab.respond("w1")
    for _ in range(2):
        lab.perform(lab.engine.not_stored(lab.waiting.pop().ticket, "no such table", START))
    assert lab.statuses() == [500]
    assert not lab.waiting


def test_a_deletion_that_cannot_be_stored_is_refused_and_the_job_is_still_there() -> None:
    lab = Lab(commits=False)
    lab.ready("w1")
    lab.post()
    lab.commit()
    lab.take("c1")
    lab.say("c1", "client", Delete("j1", b"", "svc", "all"))
    assert lab.waiting[-1].refusable
    lab.perform(lab.engine.not_stored(lab.waiting.pop().ticket, "the disk is full", START))
    ((status, body),) = lab.told()
    assert status == 500
    assert body["errors"] == ["the broker cannot store that the job is deleted: the disk is full"]
    lab.respond("w1")
    lab.commit()
    assert lab.statuses() == [200]


def test_a_job_for_which_no_worker_can_be_stored_is_not_sent() -> None:
    lab = Lab(commits=False)
    lab.post(target="any")
    lab.commit()
    lab.take("c1")
    lab.ready("w1")
    assigned = next(store for store in lab.waiting if isinstance(store.records[0], AssignedRecord))
    lab.waiting.remove(assigned)
    lab.perform(lab.engine.not_stored(assigned.ticket, "constraint failed", START))
    lab.commit()
    assert lab.posts("w1") == []
    assert lab.statuses() == [500]


def test_progress_is_passed_on_when_it_is_durable() -> None:
    lab = Lab(commits=False)
    lab.ready("w1")
    lab.post()
    lab.commit()
    lab.take("c1")
    lab.say("w1", "worker", Event("j1", 200, b'{"event_type":"progress","message":"half"}', client=b"c1"))
    assert lab.take("c1") == []
    lab.commit()
    assert [type(command) for command in lab.take("c1")] == [Event]


def test_only_what_somebody_waits_for_may_be_refused_while_the_disk_fails() -> None:
    """Results, assignments, workers and retention wait for the disk; a new job and a deletion are refused."""
    lab = Lab(commits=False)
    lab.ready("w1")
    lab.post()
    lab.commit()
    lab.respond("w1")
    lab.post("j2")
    lab.say("c1", "client", Delete("j1", b"", "svc", "all"))
    assert [(type(store.records[0]), store.refusable) for store in lab.waiting] == [
        (ResultRecord, False),
        (JobRecord, True),
        (DeletedRecord, True),
    ]


def test_a_broker_whose_store_refuses_says_so_at_once() -> None:
    lab = Lab()
    lab.ready("w1")
    lab.perform(lab.engine.store_refuses("database or disk is full", START))
    lab.post()
    ((status, body),) = lab.told()
    assert (status, body["error"]) == (500, "the broker cannot store the job: database or disk is full")
    assert StoreRefuses("database or disk is full") in lab.happened
    lab.perform(lab.engine.store_refuses("", START))
    lab.post("j2")
    assert lab.statuses() == [202]
    assert StoreAccepts() in lab.happened


def test_records_are_what_a_store_needs() -> None:
    lab = Lab()
    lab.post(target="any")
    lab.ready("w1")
    lab.respond("w1")
    written = [type(record) for record in lab.records]
    assert written == [JobRecord, WorkerRecord, AssignedRecord, ResultRecord]


@pytest.mark.parametrize("seed", range(60))
def test_killed_at_any_moment(seed: int) -> None:
    """Every acknowledged job ends at its client; nothing runs twice unless it was given out again and says so."""
    world = World(seed)
    posted = 0
    for step in range(1500):
        if step % 50 == 0 and posted < 20:
            client = world.random.choice(list(world.clients.values()))
            target = world.random.choice(["all", "any", "any", "w0", "w1,w2"])
            client.target[f"j{posted}"] = target
            posted += 1
        world.step()
    world.settle()
    assert world.crashes
    for client in world.clients.values():
        for uuid in client.target:
            assert client.has_ended(uuid), (uuid, client.workers.get(uuid), client.ends.get(uuid))
    check_runs(world)
    assert world.engine.jobs.octets == 0
    assert not world.engine.registry.absent


def check_runs(world: World) -> None:
    """A job for any that ran at two workers, or any that ran twice at one, is marked in the records."""
    attempts: dict[tuple[str, str], int] = {}
    for record in world.disk:
        if isinstance(record, JobRecord | AssignedRecord):
            for part in record.tasks:
                key = (record.uuid, part.slot)
                attempts[key] = max(attempts.get(key, 0), part.attempt)
    for client in world.clients.values():
        for uuid, target in client.target.items():
            ran = {name: world.runs[name, uuid] for name in world.workers if world.runs[name, uuid]}
            if target == "any":
                given = [attempt for (job, _), attempt in attempts.items() if job == uuid]
                assert len(given) <= 1, "a job for any has one part"
                assert sum(ran.values()) <= max(given, default=0), (uuid, ran, given)
                continue
            for name, times in ran.items():
                assert times <= attempts.get((uuid, name), 0), (uuid, name, times)


def test_posts_reach_a_worker_once_without_kills() -> None:
    world = World(1)
    for number in range(30):
        world.clients["c0"].target[f"j{number}"] = "any" if number % 2 else "all"
    world.settle()
    assert set(world.runs.values()) == {1}
    assert not any(
        isinstance(command, Post | Response) for queue in world.from_broker.values() for command in queue
    )


def test_nothing_of_a_refused_job_is_left_when_its_uuid_comes_again() -> None:
    """Its worker was lost while the disk refused it: that failure was written behind it, and must not end the next one."""
    lab = Lab(commits=False)
    lab.ready("w1")
    lab.commit()
    lab.post(target="w1")
    lab.perform(lab.engine.unreachable(b"w1", "worker", START))
    lab.perform(lab.engine.not_stored(lab.waiting.pop(0).ticket, "disk full", START))
    lab.commit()
    assert lab.statuses() == [500]
    lab.post(target="w1")
    lab.commit()
    restarted = again(lab)
    job = restarted.engine.jobs.by_uuid["j1"]
    assert not job.ended
    assert job.tasks == {} or all(task.result is None for task in job.tasks.values())


def test_a_result_whose_job_was_refused_is_forgotten_after_a_kill() -> None:
    orphan = ResultRecord("j1", "w1", 500, b"{}", START)
    lab = Lab(records=[orphan])
    assert lab.records[-1] == ForgottenRecord("j1", "refused")
    lab = Lab(records=[orphan, JobRecord("j1", b"c1", "", "svc", "w1", b"{}", START, START + 60)])
    assert not lab.engine.jobs.by_uuid["j1"].ended
