"""Losses: of the connection, the broker, the workers, the client itself. Every fault of the deployed client is one test."""

from __future__ import annotations

import json

from specwire.runtime.norfab.client.events import (
    Answered,
    ConnectionLost,
    Dropped,
    JobEnded,
    JobPostedAgain,
)
from specwire.runtime.norfab.client.records import ForgottenRecord, JobRecord
from specwire.runtime.norfab.client.states import State
from specwire.runtime.norfab.commands import Delete, Mmi, MmiReply, Post, Response
from tests.runtime.norfab_client.desk import Desk, kinds


def test_what_was_not_acknowledged_is_posted_again() -> None:
    """After a lost connection: the same uuid, so the broker never runs it twice."""
    desk = Desk().begin()
    desk.submit()
    first = desk.sent()
    desk.reconnect()
    assert desk.sent() == first
    desk.accept("w1")
    desk.answer("w1")
    assert desk.result.ok


def test_a_large_first_command_follows_a_small_one() -> None:
    """On each connection: a broker disconnects a stranger whose first message is large."""
    desk = Desk().begin()
    desk.submit(body=b"x" * 2_000_000)
    desk.submit("u2", body=b"x" * 2_000_000)
    small, *jobs = desk.sent()
    assert isinstance(small, Mmi) and kinds(jobs) == ["POST u1 all", "POST u2 all"]
    desk.hear(MmiReply(small.uuid, 200, b"{}", small.service))
    assert desk.tell(Dropped) == []
    desk.reconnect()
    assert [type(command) for command in desk.sent()] == [Mmi, Post, Post]


def test_what_was_acknowledged_is_asked_for() -> None:
    """The broker has it: a GET is enough, and each worker's result counts once."""
    desk = Desk().begin()
    desk.submit()
    desk.accept("w1", "w2")
    desk.answer("w1", 1)
    desk.sent()
    desk.reconnect()
    assert kinds(desk.sent()) == ["GET u1 w2"]
    desk.accept("w1", "w2")
    desk.answer("w1", "twice")
    desk.answer("w2", 2)
    assert desk.result.values() == {"w1": 1, "w2": 2}


def test_a_broker_that_comes_back_is_found_within_seconds() -> None:
    """Attempts grow apart, but never further than two seconds."""
    desk = Desk().begin()
    moments = []
    for _ in range(12):
        desk.lose("no connection is possible")
        before, connections = desk.now, len(desk.connected)
        while len(desk.connected) == connections:
            desk.turn(0.125)
        moments.append(desk.now - before)
    assert moments[0] <= 0.25 and max(moments) == 2.0 and moments == sorted(moments)


def test_the_next_broker_of_the_list_is_tried() -> None:
    """Clients take a list of brokers, and move to the next when one is gone for good; and on, round and round."""
    desk = Desk("tcp://a", "tcp://b", move_on_s=5.0).begin()
    desk.submit()
    for _ in range(60):
        desk.lose("no connection is possible")
        desk.turn(0.5)
    assert set(desk.connected[:3]) == {"tcp://a"}
    assert "tcp://b" in desk.connected
    b = desk.connected.index("tcp://b")
    assert "tcp://a" in desk.connected[b:]


def test_a_broker_that_is_restarted_is_not_left() -> None:
    """One that has spoken is tried for a while before another one is."""
    desk = Desk("tcp://a", "tcp://b", move_on_s=5.0).begin()
    desk.submit()
    for _ in range(10):
        desk.accept("w1")
        desk.lose()
        desk.turn(3)
    assert set(desk.connected) == {"tcp://a"}


def test_silence_is_a_lost_connection() -> None:
    """Clients have no heartbeat: a question without an answer tells that the broker is gone."""
    desk = Desk(silence_s=10.0).begin()
    desk.submit()
    desk.turn(9)
    assert not desk.tell(ConnectionLost)
    desk.turn(2)
    assert desk.tell(ConnectionLost)[0].reason == "no answer for 10 s"
    desk.turn(1)
    assert kinds(desk.sent()) == ["POST u1 all", "POST u1 all"]


def test_nothing_asked_is_no_silence() -> None:
    """A client that waits for nothing stays connected."""
    desk = Desk().begin()
    desk.turn(100)
    assert desk.connected == ["tcp://a"]


def test_a_question_that_was_lost_is_asked_again() -> None:
    """The broker speaks of other jobs, so it is there; what it does not answer is asked once more."""
    desk = Desk(silence_s=10.0).begin()
    desk.submit("u1")
    desk.submit("u2")
    desk.accept("w1", uuid="u2")
    desk.sent()
    for _ in range(12):
        desk.turn(1)
        desk.event("w1", "at it", uuid="u2")
    assert kinds(desk.sent()) == ["POST u1 all"] and not desk.tell(ConnectionLost)


def test_a_broker_without_a_memory_is_given_the_job_again() -> None:
    """A broker killed for good, and another one in its place: named workers do nothing twice, so they get it at once."""
    desk = Desk().begin()
    desk.submit()
    desk.accept("w1", "w2")
    desk.answer("w1", 1)
    desk.reconnect()
    desk.sent()
    desk.refused(404, "the uuid is unknown")
    assert kinds(desk.sent()) == ["POST u1 w2"]
    assert desk.tell(JobPostedAgain)[0].reason == "the uuid is unknown"
    desk.say(300, worker="", status="PENDING")
    desk.accept("w2")
    desk.answer("w2", 2)
    assert desk.result.values() == {"w1": 1, "w2": 2}


def test_a_broker_that_asks_the_workers_in_vain() -> None:
    """It says 202 to a GET, and 404 when no worker knows the job: then it is posted; the one that knows it is asked."""
    desk = Desk().begin()
    desk.submit()
    desk.accept("w1", "w2")
    desk.reconnect()
    desk.accept("w1", "w2")
    desk.say(300, worker="w1", status="STARTED")
    desk.answer("w1", 1)
    desk.sent()
    desk.turn(6)
    assert kinds(desk.sent()) == ["GET u1 w2"]
    desk.accept("w2")
    desk.refused(404, "the uuid is unknown")
    assert kinds(desk.sent()) == ["POST u1 w2"]
    desk.accept("w2")
    desk.answer("w2", 2)
    assert desk.result.values() == {"w1": 1, "w2": 2}


def test_a_job_for_any_worker_waits_for_the_one_that_has_it() -> None:
    """It would run twice where it is posted before its worker is back: it is asked for, for a while."""
    desk = Desk(settle_s=10.0).begin()
    desk.submit(target="any")
    desk.accept("w1")
    desk.sent()
    desk.reconnect()
    asked = []
    for _ in range(70):
        desk.refused(400, "the uuid is unknown") if desk.engine.asking.is_open("u1") else None
        desk.turn(0.25)
        asked += kinds(desk.sent())
    assert asked[0] == "GET u1 all" and "POST u1 any" in asked
    before = asked[: asked.index("POST u1 any")]
    assert set(before) == {"GET u1 all"} and len(before) >= 4


def test_a_job_for_any_worker_is_found_at_another_worker() -> None:
    """The old broker gave it to another one, and nobody lives to say so: the result is of whoever has it."""
    desk = Desk().begin()
    desk.submit(target="any")
    desk.accept("w1")
    desk.reconnect()
    desk.accept("w1", "w2", "w3")
    desk.say(300, worker="w2", status="STARTED")
    desk.sent()
    desk.turn(6)
    assert kinds(desk.sent()) == ["GET u1 w2"]
    desk.answer("w2", 5)
    assert desk.result.values() == {"w2": 5}


def test_the_finished_job_is_not_failed_by_a_restarted_broker() -> None:
    """Deployed clients give a job up when a broker that has just started knows no worker; ours asks until they are back."""
    desk = Desk(settle_s=15.0).begin()
    desk.submit(target="any")
    desk.accept("w1")
    desk.reconnect()
    for _ in range(12):
        desk.refused(400, "no workers")
        desk.turn(1)
    assert not desk.tell(JobEnded)
    desk.accept("w1")
    desk.answer("w1", 7)
    assert desk.result.values() == {"w1": 7}


def test_a_job_that_the_broker_dropped_fails_with_its_words() -> None:
    """A broker that keeps saying that there is no such job is believed in the end."""
    desk = Desk(settle_s=5.0).begin()
    desk.submit()
    desk.accept("w1")
    for _ in range(40):
        desk.refused(400, "the job was deleted")
        desk.turn(0.5)
        if desk.tell(JobEnded):
            break
    assert (desk.result.state, desk.result.code, desk.result.error) == (
        State.FAILED,
        400,
        "the job was deleted",
    )


def test_a_worker_that_does_not_know_the_job_fails_its_part() -> None:
    """A worker killed with its memory: deployed jobs stay STARTED for ever; here the part ends, and says why."""
    desk = Desk().begin()
    desk.submit()
    desk.accept("w1", "w2")
    desk.answer("w2", 2)
    desk.say(404, worker="w1", uuid="u1", status="JOB RESULTS NOT FOUND", service="svc")
    assert not desk.tell(JobEnded), "it may not have looked yet"
    desk.turn(1)
    assert "GET u1 w1" in kinds(desk.sent())
    desk.say(404, worker="w1", uuid="u1", status="JOB RESULTS NOT FOUND", service="svc")
    assert desk.result.failures == {"w1": "worker w1 does not know the job (any more)"}
    assert desk.result.results["w2"].result == 2


# --- the client is killed


def test_a_killed_client_goes_on() -> None:
    """kill -9: what was on disk is posted again where nobody had taken it, asked for where somebody had."""
    desk = Desk().begin()
    desk.submit("u1")
    desk.submit("u2")
    desk.accept("w1", "w2", uuid="u2")
    desk.answer("w1", 1, uuid="u2")
    desk.turn(1)
    after = desk.restart()
    assert kinds(after.sent()) == ["POST u1 all", "GET u2 w2"]
    after.accept("w9")
    after.answer("w9")
    after.answer("w2", 2, uuid="u2")
    assert {ended.result.uuid: ended.result.state for ended in after.tell(JobEnded)} == {
        "u1": State.COMPLETED,
        "u2": State.COMPLETED,
    }
    assert after.result.values() == {"w1": 1, "w2": 2}


def test_what_had_ended_stays_ended() -> None:
    """A restart wakes nothing up."""
    desk = Desk().begin()
    desk.submit()
    desk.accept("w1")
    desk.answer("w1")
    after = desk.restart()
    after.turn(10)
    assert after.sent() == [] and not after.tell(JobEnded)


def test_killed_between_the_last_result_and_the_end() -> None:
    """All results are on disk, the end is not: it is made up for."""
    desk = Desk().begin()
    desk.submit()
    desk.accept("w1")
    desk.turn(1)
    desk.answer("w1", 3)
    desk.stored.pop()
    after = desk.restart()
    assert after.result.values() == {"w1": 3} and after.sent() == []


def test_nothing_out_of_date_is_posted() -> None:
    """The time of a job was over while nobody ran: what was never taken is not posted hours later."""
    desk = Desk().begin()
    desk.submit("u1", timeout=60)
    desk.submit("u2", timeout=60)
    desk.accept("w1", uuid="u2")
    desk.turn(1)
    desk.now += 3600
    after = desk.restart(settle_s=15.0)
    assert [(one.result.uuid, one.result.state) for one in after.tell(JobEnded)] == [("u1", State.STALE)]
    after.turn(20)
    assert not any(kind.startswith("POST") for kind in kinds(after.sent()))


def test_what_was_taken_is_fetched_after_its_time() -> None:
    """The broker has the result of a job whose time was over while nobody ran: it is asked once more."""
    desk = Desk().begin()
    desk.submit(timeout=60)
    desk.accept("w1")
    desk.turn(1)
    desk.now += 3600
    after = desk.restart(settle_s=15.0)
    assert kinds(after.sent()) == ["GET u1 w1"]
    after.answer("w1", 8)
    assert after.result.values() == {"w1": 8}


def test_a_stale_job_of_the_store_can_be_collected() -> None:
    """`collect` goes on after a restart, too."""
    desk = Desk().begin()
    desk.submit(timeout=5)
    desk.accept("w1")
    desk.turn(1)
    desk.turn(9)
    after = desk.restart()
    assert after.sent() == []
    job = next(record for record in after.stored if isinstance(record, JobRecord))
    after.collect(stored=after.find(job))
    assert kinds(after.sent()) == ["GET u1 w1"]
    after.answer("w1", 2)
    assert after.result.values() == {"w1": 2}


def test_the_job_of_another_client() -> None:
    """Results are given to any client that knows the uuid; it is asked for, and never posted."""
    desk = Desk().begin()
    record = JobRecord("u9", "svc", "", "all", b"", desk.now, desk.now + 60)
    desk.do(desk.engine.adopt(record, desk.now))
    assert kinds(desk.sent()) == ["GET u9 all"]
    desk.accept("w1", uuid="u9")
    desk.answer("w1", 5, uuid="u9")
    assert desk.result.values() == {"w1": 5}


def test_the_job_of_nobody() -> None:
    """400: the uuid is unknown, and there is nothing to try again."""
    desk = Desk().begin()
    record = JobRecord("u9", "svc", "", "all", b"", desk.now, desk.now + 60)
    desk.do(desk.engine.adopt(record, desk.now))
    desk.refused(400, "the uuid is unknown", uuid="u9")
    assert (desk.result.state, desk.result.error) == (State.FAILED, "the uuid is unknown")
    assert not any(kind.startswith("POST") for kind in kinds(desk.sent()))


# --- deletion and management


def test_a_job_is_deleted() -> None:
    """200 answers a DELETE; the job ends for whoever waits, and nothing is kept of it."""
    desk = Desk().begin()
    desk.submit()
    desk.accept("w1")
    desk.sent()
    desk.delete()
    assert desk.sent() == [Delete("u1", service="svc", target="all")]
    entry = {"result": None, "failed": True, "errors": ["deleted by client c"]}
    desk.say(400, w1=entry, uuid="u1", service="svc", status="FAILED", error="deleted by client c")
    desk.say(200, worker="", uuid="u1", service="svc", status="DELETED")
    assert (desk.result.state, desk.result.code) == (State.FAILED, 400)
    assert [answered.answer.code for answered in desk.tell(Answered)] == [200]
    assert desk.stored[-1] == ForgottenRecord("u1")


def test_a_job_that_was_never_sent_is_not_sent() -> None:
    """Deleted while it waits here."""
    desk = Desk(disk=False).begin()
    desk.submit()
    desk.delete()
    desk.confirm()
    assert desk.result.error == "it was deleted before it was sent"
    assert kinds(desk.sent()) == ["DELETE u1 all"]


def test_a_job_without_workers_is_deleted() -> None:
    """The broker refuses it to whoever waits, and then says that it is gone."""
    desk = Desk().begin()
    desk.submit()
    desk.say(300, worker="", status="PENDING")
    desk.delete()
    desk.refused(400, "deleted by client c")
    desk.say(200, worker="", uuid="u1", service="svc", status="DELETED")
    assert desk.result.state is State.FAILED and desk.tell(Answered)[0].answer.code == 200


def test_a_deletion_of_what_nobody_knows() -> None:
    """400 UNKNOWN for a uuid never seen."""
    desk = Desk().begin()
    desk.delete("u9")
    desk.refused(400, "the uuid is unknown", uuid="u9")
    assert desk.tell(Answered)[0].answer.code == 400
    assert not any(isinstance(record, ForgottenRecord) for record in desk.stored)


def test_a_deletion_that_nobody_answers() -> None:
    """Deployed brokers know no DELETE: after its time the answer is 408."""
    desk = Desk(silence_s=100.0).begin()
    desk.delete(wait=10)
    desk.turn(11)
    answer = desk.tell(Answered)[0].answer
    assert answer.code == 408 and json.loads(answer.body)["error"] == "no answer from tcp://a"


def test_an_answer_of_the_management_comes_twice() -> None:
    """RESPONSE and MMI with the same words: whichever is first counts, in either order."""
    for first, second in (
        (
            Response("m1", 200, b"[1]", "mmi.service.broker"),
            MmiReply("m1", 200, b"[1]", "mmi.service.broker"),
        ),
        (
            MmiReply("m1", 200, b"[1]", "mmi.service.broker"),
            Response("m1", 200, b"[1]", "mmi.service.broker"),
        ),
    ):
        desk = Desk().begin()
        desk.manage("show_workers")
        assert desk.sent() == [Mmi("m1", b"{}", "mmi.service.broker", "all")]
        desk.hear(first)
        desk.hear(second)
        assert [answered.answer.read() for answered in desk.tell(Answered)] == [[1]]


def test_workers_are_asked_after_the_broker_has_said_so() -> None:
    """202 first, with the workers; the answer when they have spoken."""
    desk = Desk(silence_s=10.0).begin()
    desk.manage("show_broker", service="mmi.service.worker")
    desk.say(202, "m1", workers=["w1"])
    desk.turn(9)
    assert not desk.tell(Answered)
    desk.say(200, "m1", w1={"jobs": 3})
    assert desk.tell(Answered)[0].answer.read() == {"w1": {"jobs": 3}}


def test_a_question_is_asked_on_the_next_connection() -> None:
    """What changes nothing may be asked twice."""
    desk = Desk().begin()
    desk.manage("show_workers")
    desk.hear(Response("other", 200, b"{}"))
    desk.reconnect()
    assert kinds(desk.sent()) == ["MMI m1 all", "MMI m1 all"]


def test_a_broker_is_not_restarted_twice() -> None:
    """What may have been done is not asked for again: the answer says that nobody knows."""
    desk = Desk().begin()
    desk.manage("restart")
    desk.hear(Response("other", 200, b"{}"))
    desk.reconnect()
    assert kinds(desk.sent()) == ["MMI m1 all"]
    answer = desk.tell(Answered)[0].answer
    assert answer.code == 408 and b"may have been done" in answer.body


def test_an_order_that_never_arrived_is_given_again() -> None:
    """A connection on which the broker never spoke has carried nothing."""
    desk = Desk().begin()
    desk.manage("restart")
    desk.lose("no connection is possible")
    desk.turn(1)
    assert kinds(desk.sent()) == ["MMI m1 all", "MMI m1 all"]


def test_an_unanswered_question_ends_in_time() -> None:
    """408, with why there is no broker."""
    desk = Desk().begin()
    desk.manage("show_workers", wait=5)
    for _ in range(12):
        desk.lose("no connection is possible")
        desk.turn(0.5)
    answer = desk.tell(Answered)[0].answer
    assert answer.code == 408 and b"no answer from tcp://a: no connection is possible" in answer.body


def test_closing_says_nothing_more() -> None:
    """Jobs go on at the broker; what has changed is stored."""
    desk = Desk().begin()
    desk.submit()
    desk.accept("w1")
    desk.sent()
    desk.do(desk.engine.close(desk.now))
    desk.turn(30)
    assert not desk.open and desk.sent() == [] and desk.connected == ["tcp://a"]
    after = desk.restart()
    assert kinds(after.sent()) == ["GET u1 w1"]
