"""The life of a job at its client, a sentence of the specification or of what deployed peers do at a time."""

from __future__ import annotations

import json

import pytest

from specwire.runtime.norfab.client.events import (
    Dropped,
    JobChanged,
    JobEnded,
    JobPostponed,
    Piece,
    Progress,
    StoreFailed,
)
from specwire.runtime.norfab.client.records import JobRecord, ResultRecord, StateRecord
from specwire.runtime.norfab.client.results import JobError
from specwire.runtime.norfab.client.states import State
from specwire.runtime.norfab.commands import (
    Event,
    Get,
    Keepalive,
    MmiReply,
    Open,
    Post,
    Response,
    Stream,
)
from tests.runtime.norfab_client.desk import BODY, START, Desk, kinds


def test_a_job_from_its_submission_to_its_result() -> None:
    """Stored, sent, dispatched, started, completed; the result is stored."""
    desk = Desk().begin()
    desk.submit()
    assert desk.sent() == [Post("u1", BODY, "svc", "all")]
    desk.accept("w1")
    desk.say(201, worker="w1", status="ACCEPTED")
    desk.answer("w1", 3)
    assert [changed.state for changed in desk.tell(JobChanged)] == [State.DISPATCHED, State.STARTED]
    assert desk.result.state is State.COMPLETED and desk.result.values() == {"w1": 3}
    assert [record.entry for record in desk.stored if isinstance(record, ResultRecord)] == [
        b'{"result": 3, "failed": false, "errors": []}'
    ]
    assert isinstance(desk.stored[-1], StateRecord) and desk.stored[-1].state == "COMPLETED"
    assert desk.sent() == []


def test_where_nobody_hears_of_changes_the_end_is_told_all_the_same() -> None:
    """Of several workers each answer is a change, of which a list of all is made."""
    desk = Desk().begin()
    desk.engine.observed = False
    desk.submit()
    desk.accept("w1", "w2")
    desk.answer("w1", 3)
    desk.answer("w2", 4)
    assert desk.tell(JobChanged) == []
    assert desk.result.values() == {"w1": 3, "w2": 4}


def test_a_job_is_stored_before_it_is_sent() -> None:
    """Clients SHOULD persistently store job requests: nothing is sent that a crash would forget."""
    desk = Desk(disk=False).begin()
    desk.submit()
    desk.turn(3)
    assert desk.sent() == []
    desk.confirm()
    assert kinds(desk.sent()) == ["POST u1 all"]


def test_a_job_that_cannot_be_stored_is_not_sent() -> None:
    """A full disk is a failure of the job that names the cause."""
    desk = Desk(disk=False).begin()
    desk.submit()
    desk.refuse("database or disk is full")
    assert (desk.result.state, desk.result.code) == (State.FAILED, 500)
    assert "disk is full" in desk.result.explain() and "not sent" in desk.result.explain()
    desk.turn(20)
    desk.confirm()
    assert desk.sent() == [] and desk.stored == []
    assert not desk.tell(StoreFailed), "the caller has the reason"


def test_a_job_that_is_not_stored_in_time_is_not_sent_either() -> None:
    """The disk has not answered when its time is over, and its caller waits again."""
    for stored in (True, False):
        desk = Desk(disk=False).begin()
        desk.submit(timeout=5)
        desk.turn(10)
        assert desk.result.state is State.STALE
        desk.collect(wait=60)
        desk.turn(5)
        assert desk.sent() == []
        if stored:
            desk.confirm()
            assert kinds(desk.sent()) == ["POST u1 all"]
        else:
            desk.refuse("database or disk is full")
            assert (desk.result.state, desk.result.code) == (State.FAILED, 500)


def test_a_result_that_cannot_be_stored_is_reported() -> None:
    """The job ends for its caller, and an event names the cause."""
    desk = Desk().begin()
    desk.submit()
    desk.accept("w1")
    desk.turn(1)
    desk.disk = False
    desk.answer("w1", 3)
    desk.fail_commits("no such table: results")
    assert desk.result.values() == {"w1": 3}
    assert desk.tell(StoreFailed) == [
        StoreFailed("records of u1 could not be stored: no such table: results")
    ]


def test_a_job_ends_when_every_worker_has_answered() -> None:
    """Results of workers are collected, each once."""
    desk = Desk().begin()
    desk.submit()
    desk.accept("w1", "w2")
    desk.answer("w2", 2)
    desk.answer("w2", "again")
    assert not desk.tell(JobEnded)
    desk.answer("w1", 1)
    assert desk.result.values() == {"w1": 1, "w2": 2}
    assert [dropped.kind for dropped in desk.tell(Dropped)] == ["double"]


def test_several_results_in_one_response() -> None:
    """A deployed broker may send more than one entry at once."""
    desk = Desk().begin()
    desk.submit()
    desk.accept("w1", "w2")
    desk.say(200, w1={"result": 1, "failed": False}, w2={"result": 2, "failed": False})
    assert desk.result.values() == {"w1": 1, "w2": 2}


def test_a_failed_task_fails_the_job() -> None:
    """A failed task is also 200 with ``failed``; the errors are told by worker."""
    desk = Desk().begin()
    desk.submit()
    desk.accept("w1", "w2")
    desk.answer("w1", 1)
    desk.answer("w2", None, failed=True, errors=["no such device"])
    assert desk.result.state is State.FAILED and desk.result.failures == {"w2": "no such device"}
    assert desk.result.explain() == "add of svc (u1) has failed: w2: no such device"


def test_a_result_before_the_list_of_workers() -> None:
    """What comes in another order is taken; who else has the job is asked."""
    desk = Desk().begin()
    desk.submit()
    desk.sent()
    desk.answer("w1", 1)
    assert kinds(desk.sent()) == ["GET u1 all"] and not desk.tell(JobEnded)
    desk.accept("w1", "w2")
    desk.answer("w2", 2)
    assert desk.result.values() == {"w1": 1, "w2": 2}


def test_a_pending_job_waits() -> None:
    """300: a broker that queues says so first, and 202 later."""
    desk = Desk().begin()
    desk.submit()
    desk.say(300, worker="", status="PENDING")
    desk.turn(4)
    assert not desk.tell(JobEnded)
    desk.accept("w1")
    desk.say(300, worker="w1", status="STARTED")
    desk.answer("w1")
    assert desk.result.ok


def test_a_ready_result_is_asked_for() -> None:
    """Deployed workers push nothing: the client GETs when an EVENT says that the result is ready."""
    desk = Desk().begin()
    desk.submit()
    desk.accept("w1", "w2")
    desk.sent()
    desk.event("w1", "", kind="result_ready")
    assert kinds(desk.sent()) == ['GET u1 ["w1","w2"]']
    desk.accept("w1", "w2")
    desk.answer("w1", 1)
    desk.event("w1", "", kind="result_ready")
    assert desk.sent() == []
    desk.event("w2", "", kind="result_ready")
    assert kinds(desk.sent()) == ["GET u1 w2"]


def test_a_silent_job_is_asked_for_ever_more_seldom() -> None:
    """Results that were lost, or are never announced, are found by asking."""
    desk = Desk(poll_s=5.0, longest_poll_s=20.0, silence_s=1000.0).begin()
    desk.submit(timeout=200)
    desk.accept("w1")
    desk.sent()
    asked = []
    for second in range(1, 66):
        desk.turn(1)
        if desk.sent():
            asked.append(second)
            desk.engine.asking.answered("u1")
    assert asked == [5, 15, 35, 55]


def test_news_put_the_question_off() -> None:
    """Whoever hears of a job needs not ask."""
    desk = Desk(poll_s=5.0).begin()
    desk.submit()
    desk.accept("w1")
    desk.sent()
    for _ in range(5):
        desk.turn(4)
        desk.event("w1", "still at it")
    assert desk.sent() == []
    assert [progress.message for progress in desk.tell(Progress)] == ["still at it"] * 5


@pytest.mark.parametrize("status", [400, 404])
def test_a_refused_job_fails_with_the_brokers_reason(status: int) -> None:
    """400: the client SHOULD NOT retry."""
    desk = Desk().begin()
    desk.submit()
    desk.sent()
    desk.refused(status, "alice may not call 'add' of svc")
    assert (desk.result.state, desk.result.code) == (State.FAILED, status)
    assert desk.result.error == "alice may not call 'add' of svc"
    desk.turn(30)
    assert desk.sent() == []


def test_an_internal_error_is_tried_again() -> None:
    """500: the client SHOULD retry at some later time; ever later, under the same uuid."""
    desk = Desk(retry_s=0.5, longest_retry_s=2.0).begin()
    desk.submit()
    assert kinds(desk.sent()) == ["POST u1 all"]
    waits = []
    for _ in range(5):
        desk.refused(500, "the disk is behind")
        before = desk.now
        while not (sent := desk.sent()):
            desk.turn(0.125)
        assert kinds(sent) == ["POST u1 all"]
        waits.append(desk.now - before)
    assert waits == [0.5, 1.0, 2.0, 2.0, 2.0]
    assert desk.tell(JobPostponed)[0].reason == "the disk is behind"
    desk.accept("w1")
    desk.answer("w1")
    assert desk.result.ok


def test_a_broker_that_never_takes_a_job_is_named_at_the_deadline() -> None:
    """The last refusal is the cause."""
    desk = Desk().begin()
    desk.submit(timeout=5)
    desk.refused(500, "the broker has too many unfinished jobs")
    for _ in range(50):
        desk.turn(0.2)
        if desk.sent():
            desk.refused(500, "the broker has too many unfinished jobs")
    assert (desk.result.state, desk.result.code) == (State.STALE, 408)
    assert "too many unfinished jobs" in desk.result.explain()


def test_the_loss_of_a_worker_is_the_end_of_its_part() -> None:
    """500 with the worker's entry says how its part ended; it is not tried again."""
    desk = Desk().begin()
    desk.submit(target="w1")
    desk.accept("w1")
    entry = {"result": None, "failed": True, "errors": ["worker w1 is silent"], "attempt": 1}
    desk.say(500, w1=entry, uuid="u1", service="svc", status="FAILED", error="worker w1 is silent")
    assert (desk.result.state, desk.result.code) == (State.FAILED, 500)
    assert desk.result.explain() == "add of svc (u1) has failed: worker w1 is silent"


def test_a_failure_before_any_worker_is_known_is_the_end() -> None:
    """408 for a job that no worker came for."""
    desk = Desk().begin()
    desk.submit()
    desk.say(300, worker="", status="PENDING")
    desk.refused(408, "no worker of svc for 'all' within 60 s")
    assert (desk.result.state, desk.result.code) == (State.FAILED, 408)


def test_a_redispatched_part_says_who_did_it() -> None:
    """A job for any worker that was given to another one: once, under the name that was told."""
    desk = Desk().begin()
    desk.submit(target="any")
    desk.accept("w1")
    desk.answer("w1", 3, worker="w2", attempt=2)
    part = desk.result.results["w1"]
    assert (part.result, part.done_by, part.attempt) == (3, "w2", 2)


def test_no_answer_in_time_is_408_on_the_clients_side() -> None:
    """408: Client did not receive response from broker or worker; the workers that owe one are named."""
    desk = Desk(poll_s=1000.0).begin()
    desk.submit(timeout=30)
    desk.accept("w1", "w2")
    desk.answer("w1")
    desk.turn(30.5)
    assert not desk.tell(JobEnded), "the broker has a moment to say why"
    desk.turn(1)
    assert (desk.result.state, desk.result.code) == (State.STALE, 408)
    assert desk.result.error == "no result within 30 s from w2"
    assert desk.result.missing == ("w2",) and desk.result.results["w1"].result == 3


def test_a_wait_that_began_after_the_job_leaves_the_broker_a_moment_too() -> None:
    """What the broker says then is what is told, and not that the client knows of no worker."""
    desk = Desk(poll_s=1000.0).begin()
    desk.submit(timeout=2)
    desk.now += 0.002
    desk.collect(wait=2)
    desk.say(300, worker="", status="PENDING")
    desk.turn(2.25)
    assert not desk.tell(JobEnded)
    desk.refused(408, "no worker of svc for 'all' within 2 s")
    assert (desk.result.state, desk.result.code) == (State.FAILED, 408)
    assert desk.result.error == "no worker of svc for 'all' within 2 s"


def test_without_a_broker_the_deadline_is_kept_at_once() -> None:
    """Nobody is there to say more; why there is no broker is the cause."""
    desk = Desk().begin()
    desk.submit(timeout=5)
    for _ in range(20):
        desk.lose("no connection is possible")
        desk.turn(0.5)
    ended = desk.tell(JobEnded)
    assert len(ended) == 1 and ended[0].result.ended_at == pytest.approx(START + 5, abs=0.2)
    assert "no broker has taken it within 5 s: no connection is possible" in desk.result.explain()


def test_a_late_result_is_taken_all_the_same() -> None:
    """A stale job is completed by what comes late, and that is told."""
    desk = Desk().begin()
    desk.submit(timeout=5)
    desk.accept("w1")
    desk.turn(7)
    desk.say(300, worker="w1", status="STARTED")
    desk.answer("w1", 9)
    ended = desk.tell(JobEnded)
    assert [(one.result.state, one.late) for one in ended] == [(State.STALE, False), (State.COMPLETED, True)]
    assert [dropped.kind for dropped in desk.tell(Dropped)] == ["late"]
    desk.answer("w1", 10)
    assert desk.tell(Dropped)[-1].kind == "double" and len(desk.tell(JobEnded)) == 2


def test_a_stale_job_can_be_collected() -> None:
    """It is asked for again, until the new deadline."""
    desk = Desk().begin()
    desk.submit(timeout=5)
    desk.accept("w1")
    desk.turn(7)
    desk.sent()
    desk.collect(wait=20)
    assert kinds(desk.sent()) == ["GET u1 w1"]
    desk.accept("w1")
    desk.turn(10)
    desk.answer("w1", 4)
    assert desk.result.values() == {"w1": 4} and not desk.tell(JobEnded)[-1].late


def test_forged_messages_change_nothing() -> None:
    """A response for a job that is not here, or of a worker that does not have it, is dropped and told."""
    desk = Desk().begin()
    desk.submit()
    desk.accept("w1")
    desk.answer("w1", 1, uuid="other")
    desk.answer("mallory", 1)
    desk.event("w1", "?", uuid="other")
    assert not desk.tell(JobEnded)
    assert [dropped.kind for dropped in desk.tell(Dropped)] == ["unknown"] * 3


@pytest.mark.parametrize(
    "command",
    [
        Response("u1", 200, b"\xff"),
        Response("u1", 200, b"[1]"),
        Response("u1", 200, b"{}"),
    ],
)
def test_a_result_that_is_none_is_417(command: Response) -> None:
    """417: Client did not receive what it was expecting to receive."""
    desk = Desk().begin()
    desk.submit()
    desk.accept("w1")
    desk.hear(command)
    assert (desk.result.state, desk.result.code) == (State.FAILED, 417)


@pytest.mark.parametrize(
    "command",
    [
        Response("u1", 202, b"{}"),
        Response("u1", 202, b'{"workers":7}'),
        Response("u1", 202, b"not JSON"),
        Response("u1", 201, b"not JSON"),
        Response("u1", 300, b"[]"),
        Response("u1", 102, b'{"worker":{"a":1}}'),
        Response("u1", 999, b"{}"),
        Response("u1", 0, b""),
        Keepalive("svc"),
        Post("u1", b"{}", "svc"),
        Get("u1"),
        Open(b"?"),
        MmiReply("u1", 200, b"{}", "mmi.service.broker"),
        MmiReply("nobody", 200, b"{}", "mmi.service.broker"),
        Stream("other", 200, b"x"),
    ],
)
def test_odd_messages_harm_nothing(command: Response) -> None:
    """Whatever comes, the job goes on."""
    desk = Desk().begin()
    desk.submit()
    desk.hear(command)
    desk.do(desk.engine.malformed("frames", desk.now))
    desk.accept("w1")
    desk.answer("w1")
    assert desk.result.ok


@pytest.mark.parametrize("body", [b"", b"[]", b"\xff", b'"x"', b"[" * 100_000])
def test_odd_progress_is_dropped(body: bytes) -> None:
    """An EVENT that is no JSON object is none."""
    desk = Desk().begin()
    desk.submit()
    desk.hear(Event("u1", 200, body))
    assert not desk.tell(Progress) and desk.tell(Dropped)[-1].kind == "malformed"


def test_an_entry_of_any_shape_is_a_result() -> None:
    """What a worker writes is made to fit: it never ends the client."""
    desk = Desk().begin()
    desk.submit()
    desk.accept("w1")
    desk.answer("w1", {"a": [1]}, errors="one", messages=None, resources=7, attempt="x", task=None, dry_run=3)
    part = desk.result.results["w1"]
    assert (part.result, part.errors, part.attempt, part.dry_run) == ({"a": [1]}, ("one",), 1, None)


def test_streams_and_input() -> None:
    """A worker streams octets to a job, and takes input for it."""
    desk = Desk().begin()
    desk.submit()
    desk.accept("w1")
    desk.sent()
    desk.hear(Stream("u1", 200, b"octets"))
    desk.do(desk.engine.put("u1", b'{"offset":6}', "", desk.now))
    assert desk.tell(Piece)[0].body == b"octets"
    assert kinds(desk.sent()) == ["PUT u1 w1"]
    desk.do(desk.engine.put("nobody", b"", "", desk.now))
    assert desk.sent() == []


def test_a_worker_that_waits_for_input_is_at_work() -> None:
    """102 is no end."""
    desk = Desk().begin()
    desk.submit()
    desk.accept("w1")
    desk.say(102, worker="w1", status="WAITING", input_request={"id": "i1"})
    assert desk.tell(JobChanged)[-1].state is State.STARTED and not desk.tell(JobEnded)


def test_only_so_many_questions_are_out() -> None:
    """A client that has much to do does not drown the socket, and the first word on a connection opens the way."""
    desk = Desk(window=10, untried_window=3).begin()
    for number in range(30):
        desk.submit(f"u{number}")
    assert len(desk.sent()) == 3
    desk.accept("w1", uuid="u0")
    assert len(desk.sent()) == 8
    for number in range(1, 11):
        desk.accept("w1", uuid=f"u{number}")
    assert len(desk.sent()) == 10


def test_there_is_room_for_so_many_jobs() -> None:
    """Jobs that have not ended are bounded; a stale one is none of them."""
    desk = Desk(jobs=2).begin()
    desk.submit("u1", timeout=5)
    desk.submit("u2")
    assert desk.engine.room == 0
    desk.accept("w1", uuid="u2")
    desk.answer("w1", uuid="u2")
    assert desk.engine.room == 1
    desk.turn(10)
    assert desk.engine.room == 2


def test_stale_and_ended_jobs_are_bounded() -> None:
    """What is over is forgotten in the end."""
    desk = Desk(stale_jobs=2, ended_jobs=3).begin()
    for number in range(8):
        desk.submit(f"u{number}", timeout=1)
    desk.turn(5)
    assert set(desk.engine.table.by_uuid) == {"u6", "u7"} and len(desk.engine.table.ended) == 3
    desk.answer("w1", uuid="u5")
    desk.answer("w1", uuid="u0")
    assert [dropped.kind for dropped in desk.tell(Dropped)] == ["double", "unknown"]


def test_reminders_of_ended_jobs_do_not_gather() -> None:
    """A job that takes a moment leaves nothing behind for the ten minutes that it might have taken."""
    desk = Desk().begin()
    for number in range(5_000):
        uuid = f"u{number}"
        desk.submit(uuid, timeout=600)
        desk.accept("w1", uuid=uuid)
        desk.answer("w1", uuid=uuid)
        desk.told.clear()
    assert len(desk.engine.agenda) < 5_000


def test_progress_is_kept_up_to_a_bound() -> None:
    """A worker that never stops talking fills no disk."""
    desk = Desk(events_per_job=3).begin()
    desk.submit()
    for number in range(5):
        desk.event("w1", f"step {number}")
    assert len(desk.tell(Progress)) == 5
    assert sum(type(record).__name__ == "EventRecord" for record in desk.stored) == 3


def test_short_jobs_store_no_states_in_between() -> None:
    """A job is three records: itself, its result, its end. One that takes longer says where it is."""
    desk = Desk().begin()
    desk.submit()
    desk.accept("w1")
    desk.answer("w1")
    desk.turn(1)
    assert [type(record) for record in desk.stored] == [JobRecord, ResultRecord, StateRecord]
    desk.submit("u2")
    desk.accept("w1", uuid="u2")
    desk.turn(1)
    last = desk.stored[-1]
    assert isinstance(last, StateRecord) and (last.state, last.workers) == ("DISPATCHED", ("w1",))


def test_results_say_what_they_cannot_give() -> None:
    """`values` raises with everything that is known."""
    desk = Desk().begin()
    desk.submit()
    desk.accept("w1", "w2")
    desk.answer("w1", 1)
    found = desk.engine.look("u1")
    assert found is not None and not found.ended
    assert found.explain() == "add of svc (u1) has not ended (STARTED): no answer of w2"
    with pytest.raises(JobError, match="no answer of w2") as raised:
        found.values()
    assert raised.value.result is found


def test_json_in_the_store_is_what_the_worker_wrote() -> None:
    """Nothing of an entry is lost, whatever its keys."""
    desk = Desk().begin()
    desk.submit()
    desk.accept("w1")
    desk.answer("w1", 1, vendor={"x": [None]})
    entry = next(record.entry for record in desk.stored if isinstance(record, ResultRecord))
    assert json.loads(entry)["vendor"] == {"x": [None]}


def test_a_result_may_be_nested_as_deep_as_it_likes() -> None:
    """It is kept as it came, and never ends the client."""
    desk = Desk().begin()
    desk.submit()
    desk.accept("w1")
    deep = b"[" * 400 + b"]" * 400
    desk.hear(Response("u1", 200, b'{"w1":{"failed":false,"result":' + deep + b"}}"))
    assert desk.result.state in (State.COMPLETED, State.FAILED)
    kept = [record.entry for record in desk.stored if isinstance(record, ResultRecord)]
    assert kept == [b'{"failed":false,"result":' + deep + b"}"]
    desk.submit("u2")
    desk.accept("w1", uuid="u2")
    deep = b"[" * 100_000 + b"]" * 100_000
    desk.hear(Response("u2", 200, b'{"w1":{"failed":false,"result":' + deep + b"}}"))
    assert desk.result.uuid == "u2" and desk.result.code == 417
