"""Each command, from whom it is expected and from whom it is not: what the broker does with it."""

from __future__ import annotations

import json

import pytest

from specwire.runtime.norfab.commands import (
    Command,
    Delete,
    Disconnect,
    Event,
    Get,
    Keepalive,
    Mmi,
    MmiReply,
    Open,
    Post,
    Put,
    Ready,
    Response,
    Role,
    Stream,
)
from specwire.runtime.norfab.events import Dropped, JobEnded, WorkerGone
from specwire.runtime.norfab.limits import Settings
from tests.runtime.norfab.scripted import Lab, job, result


def test_a_job_from_post_to_result() -> None:
    """202 with the workers, POST to them, 201 and 200 of each: "Client sends POST … Broker relays"."""
    lab = Lab()
    lab.ready("w1", "w2")
    lab.post()
    assert lab.told() == [
        (
            202,
            {
                "workers": ["w1", "w2"],
                "uuid": "j1",
                "target": "all",
                "status": "DISPATCHED",
                "service": "svc",
            },
        )
    ]
    assert lab.take("w1") == lab.take("w2") == [Post("j1", job(), client=b"c1")]
    lab.respond("w1", 201)
    lab.respond("w1")
    assert lab.told() == [
        (201, {"worker": "w1", "uuid": "j1", "service": "svc", "status": "ACCEPTED"}),
        (200, json.loads(result("w1"))),
    ]
    assert not lab.engine.jobs.by_uuid["j1"].ended
    lab.respond("w2")
    assert lab.statuses() == [200]
    assert lab.engine.jobs.by_uuid["j1"].ended
    assert lab.engine.jobs.octets == 0


def test_open_is_confirmed_to_both_roles() -> None:
    lab = Lab()
    lab.say("c1", "client", Open(b"{}"))
    lab.say("w1", "worker", Open(b""))
    assert lab.take("c1") == lab.take("w1") == [Open()]


def test_ready_is_not_answered() -> None:
    """ "There is no response to a READY." """
    lab = Lab()
    lab.ready("w1")
    assert lab.take("w1") == []


def test_keepalive_goes_out_on_its_interval_even_among_other_commands() -> None:
    lab = Lab()
    lab.ready("w1")
    for number in range(10):
        lab.post(f"j{number}")
        lab.wait(1.0, alive=["w1"])
    sent = [said for said in lab.take("w1") if isinstance(said, Keepalive)]
    assert sent == [Keepalive("svc")] * 4


@pytest.mark.parametrize(
    "command",
    [
        Keepalive("svc"),
        Response("j0", 300, b"{}", client=b"c1"),
        Event("j0", 200, b"{}", client=b"c1"),
        Stream("j0", 200, b"", client=b"c1"),
        Open(),
    ],
)
def test_any_command_of_a_worker_is_a_sign_of_life(command: Command) -> None:
    """ "Any received command except DISCONNECT acts as a keepalive." """
    lab = Lab()
    lab.ready("w1")
    for _ in range(4):
        lab.wait(14.0)
        lab.say("w1", "worker", command)
    assert lab.engine.registry.workers
    lab.wait(15.0)
    assert not lab.engine.registry.workers
    assert lab.reported(WorkerGone)[0].reason == "was silent for 15 s"


def test_disconnect_of_a_worker_ends_it_without_a_word() -> None:
    """ "When the broker receives DISCONNECT from a worker it MUST send no further commands to that worker." """
    lab = Lab()
    lab.ready("w1")
    lab.say("w1", "worker", Disconnect("svc"))
    lab.post()
    lab.wait(100)
    assert lab.take("w1") == []


def test_disconnect_of_a_worker_with_a_job_is_told_at_once() -> None:
    lab = Lab()
    lab.ready("w1")
    lab.post()
    lab.take("c1")
    lab.say("w1", "worker", Disconnect("svc"))
    (said,) = lab.told()
    assert said[0] == 500
    assert said[1]["w1"]["failed"] is True
    assert said[1]["error"] == "worker w1 has left"


@pytest.mark.parametrize("role", ["client", "worker", "broker"])
@pytest.mark.parametrize(
    "command",
    [
        Ready("svc"),
        Keepalive("svc"),
        Disconnect("svc"),
        Post("j9", b"{}", client=b"c1"),
        Get("j9", client=b"c1"),
        Delete("j9", client=b"c1"),
        Put("j9", b"", client=b"c1"),
        Response("j9", 200, b"{}", "svc"),
        Event("j9", 200, b"{}", "svc"),
        Stream("j9", 200, b"", "svc"),
        MmiReply("j9", 200, b"{}", "svc"),
    ],
)
def test_what_another_role_sends_is_dropped_or_answered(role: Role, command: Command) -> None:
    lab = Lab()
    lab.ready("w1")
    lab.post()
    lab.take("c1")
    lab.say("peer", role, command)
    assert lab.take("c1") == []
    assert set(lab.engine.registry.workers) <= {"w1", "peer"}


@pytest.mark.parametrize(
    "command", [Post("j9", b"{}"), Put("j9", b""), Mmi("m", b"{}", "s"), MmiReply("m", 200, b"", "s")]
)
def test_an_unexpected_command_of_a_worker_ends_its_connection(command: Command) -> None:
    """ "MUST respond to any valid but unexpected command by sending DISCONNECT and then no further commands"."""
    lab = Lab()
    lab.ready("w1")
    lab.say("w1", "worker", command)
    assert lab.take("w1") == [Disconnect("svc")]
    lab.post()
    lab.wait(30)
    assert lab.take("w1") == []


def test_get_is_answered_with_202_and_then_with_what_there_is() -> None:
    lab = Lab()
    lab.ready("w1", "w2")
    lab.post()
    lab.respond("w1")
    lab.take("c1")
    lab.get()
    assert [(status, next(iter(body))) for status, body in lab.told()] == [
        (202, "workers"),
        (200, "w1"),
        (300, "worker"),
    ]
    lab.respond("w2")
    lab.take("c1")
    lab.get()
    assert lab.statuses() == [202, 200, 200]


def test_another_client_that_knows_the_uuid_gets_the_result_when_it_comes() -> None:
    lab = Lab()
    lab.ready("w1")
    lab.post()
    lab.get(client="c2")
    assert lab.statuses("c2") == [202, 300]
    lab.respond("w1")
    assert lab.told("c2") == [(200, json.loads(result("w1")))]


def test_get_asks_the_worker_but_not_more_than_once_a_second() -> None:
    lab = Lab()
    lab.ready("w1")
    lab.post()
    lab.take("w1")
    lab.now += 1.0
    for _ in range(100):
        lab.get()
    assert lab.take("w1") == [Get("j1", client=b"c1")]


def test_event_is_passed_on_and_result_ready_is_followed_by_a_question() -> None:
    """Deployed workers keep the result until they are asked: the broker asks, and the client need not."""
    lab = Lab()
    lab.ready("w1")
    lab.post()
    lab.respond("w1", 201)
    lab.take("c1")
    lab.take("w1")
    lab.tell("w1", "progress")
    lab.tell("w1", "result_ready")
    assert [type(said) for said in lab.take("c1")] == [Event, Event]
    assert lab.take("w1") == [Get("j1", client=b"c1")]
    lab.respond("w1")
    assert lab.statuses() == [200]


def test_stream_and_put_pass_while_the_job_runs() -> None:
    lab = Lab()
    lab.ready("w1", "w2")
    lab.post(target="w1")
    lab.take("w1")
    lab.take("c1")
    lab.say("c1", "client", Put("j1", b'{"offset":0}', "svc", '["w1"]'))
    assert lab.take("w1") == [Put("j1", b'{"offset":0}', client=b"c1")]
    assert lab.take("w2") == []
    lab.say("w1", "worker", Stream("j1", 200, b"\x00\xff", client=b"c1"))
    assert lab.take("c1") == [Stream("j1", 200, b"\x00\xff", "svc")]
    lab.respond("w1")
    lab.take("c1")
    lab.say("c1", "client", Put("j1", b'{"offset":1}', "svc", "w1"))
    lab.say("w1", "worker", Stream("j1", 200, b"late", client=b"c1"))
    assert lab.take("c1") == lab.take("w1") == []
    assert lab.reported(Dropped)[-1].kind == "double"


def test_a_worker_that_waits_for_input_says_so_in_its_own_words() -> None:
    lab = Lab()
    lab.ready("w1")
    lab.post()
    lab.take("c1")
    lab.respond("w1", 102, body=b'{"worker":"w1","input_request":{"id":"i"}}')
    assert lab.told() == [(102, {"worker": "w1", "input_request": {"id": "i"}})]


@pytest.mark.parametrize("status", [500, 408, 417])
def test_an_error_of_a_worker_is_told_as_500(status: int) -> None:
    lab = Lab()
    lab.ready("w1")
    lab.post()
    lab.take("c1")
    lab.respond("w1", status)
    ((code, body),) = lab.told()
    assert (code, body["error"]) == (500, f"worker w1 answered {status}")


def test_a_result_with_a_status_of_the_task_s_own_is_a_result() -> None:
    """Deployed tasks may choose the status of their result."""
    lab = Lab()
    lab.ready("w1")
    lab.post()
    lab.take("c1")
    lab.respond("w1", 404, body=result("w1", None))
    assert lab.told() == [(404, json.loads(result("w1", None)))]


def test_a_job_that_takes_too_long_ends_with_408_and_is_cancelled() -> None:
    lab = Lab()
    lab.ready("w1")
    lab.post(body=job(timeout=20))
    lab.respond("w1", 201)
    lab.take("c1")
    lab.take("w1")
    lab.wait(20, alive=["w1"])
    assert lab.told()[-1][1]["error"] == "no result within 20 s"
    assert Delete("j1", client=b"c1") in lab.take("w1")
    lab.respond("w1")
    assert lab.take("c1") == []
    assert [ended.status for ended in lab.reported(JobEnded)] == [408]


def test_a_job_whose_time_is_over_before_a_worker_comes_says_who_did_not() -> None:
    """Nobody at all, or one that was named while others are here."""
    lab = Lab()
    lab.post(body=job(timeout=20))
    lab.wait(20)
    assert lab.told()[-1][1]["error"] == "no worker of svc for 'all' within 20 s"
    lab.ready("w1")
    lab.post("j2", target="w1,w9", body=job(timeout=20))
    lab.respond("w1", uuid="j2")
    lab.wait(20, alive=["w1"])
    assert lab.told()[-1][1]["w9"]["errors"] == ["w9 did not come within 20 s"]


def test_a_worker_that_keeps_silent_about_a_job_is_asked() -> None:
    lab = Lab(Settings(poll_s=5.0))
    lab.ready("w1")
    lab.post()
    lab.take("w1")
    lab.wait(11, alive=["w1"])
    assert [said for said in lab.take("w1") if isinstance(said, Get)] == [Get("j1", client=b"c1")] * 2


def test_stop_lets_the_workers_go_and_waits_for_the_disk() -> None:
    lab = Lab(commits=False)
    lab.ready("w1")
    lab.post()
    lab.perform(lab.engine.stop(lab.now))
    assert lab.take("w1") == [Disconnect("svc")]
    assert lab.stopped is None
    lab.post("j2")
    lab.commit()
    assert lab.stopped is not None
    assert [body.get("error") for status, body in lab.told() if status == 500] == ["the broker stops"]
