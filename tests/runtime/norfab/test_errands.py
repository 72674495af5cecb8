"""``mmi.service.worker``: requests to workers themselves, passed on by target, and their answers gathered."""

from __future__ import annotations

import json
from typing import Any

import pytest

from specwire.runtime.norfab.access import Everyone
from specwire.runtime.norfab.commands import Disconnect, Get, Mmi, MmiReply, Post, Response
from specwire.runtime.norfab.events import Dropped
from specwire.runtime.norfab.limits import Settings
from tests.runtime.norfab.scripted import Lab, job, result

SERVICE = "mmi.service.worker"
ASK = b'{"task":"show_broker","kwargs":{},"args":[]}'


def ask(lab: Lab, target: str = "all", uuid: str = "m1", body: bytes = ASK, user: str = "") -> None:
    lab.say("admin", "client", Mmi(uuid, body, SERVICE, target), user)


def answer(
    lab: Lab,
    worker: str,
    body: bytes = b'{"a":1}',
    status: int = 200,
    uuid: str = "m1",
    client: bytes = b"admin",
) -> None:
    lab.say(worker, "worker", Response(uuid, status, body, client=client))


def told(lab: Lab) -> list[tuple[str, int, Any]]:
    return [(type(said).__name__, said.status, json.loads(said.body)) for said in lab.take("admin")]


def test_a_request_goes_to_its_target_and_the_answer_back() -> None:
    lab = Lab()
    lab.ready("w1", "w2")
    ask(lab, "w2")
    assert lab.take("w2") == [Mmi("m1", ASK, client=b"admin")]
    assert lab.take("w1") == []
    dispatched = {
        "workers": ["w2"],
        "uuid": "m1",
        "target": "w2",
        "status": "DISPATCHED",
        "service": SERVICE,
    }
    assert told(lab) == [("Response", 202, dispatched)]
    answer(lab, "w2", b'{"status":"alive"}')
    said = lab.take("admin")
    assert said == [
        Response("m1", 200, b'{"w2":{"status":"alive"}}', SERVICE),
        MmiReply("m1", 200, b'{"w2":{"status":"alive"}}', SERVICE),
    ]
    assert lab.reported(Dropped) == []


def test_all_workers_of_all_services_answer_together() -> None:
    lab = Lab()
    lab.ready("w1")
    lab.ready("x1", service="other")
    ask(lab, "all")
    assert told(lab)[0][2]["workers"] == ["w1", "x1"]
    answer(lab, "x1", b'"x"')
    assert told(lab) == []
    answer(lab, "w1", b"[]")
    assert told(lab) == [("Response", 200, {"x1": "x", "w1": []}), ("MmiReply", 200, {"x1": "x", "w1": []})]


def test_any_is_one_worker() -> None:
    lab = Lab()
    lab.ready("w1", "w2")
    ask(lab, "any")
    assert [len(lab.take(name)) for name in ("w1", "w2")] == [1, 0]


@pytest.mark.parametrize("kind", [Get, Post])
def test_peers_without_mmi_ask_with_what_they_have(kind: type[Get | Post]) -> None:
    lab = Lab()
    lab.ready("w1")
    lab.say("admin", "client", kind("m1", ASK, SERVICE, "w1"))
    answer(lab, "w1")
    assert [(name, status) for name, status, _ in told(lab)] == [("Response", 202), ("Response", 200)]


def test_a_worker_that_is_named_and_not_here_is_mentioned() -> None:
    lab = Lab()
    lab.ready("w1")
    ask(lab, "w1,w9")
    assert told(lab)[0][2]["missing"] == ["w9"]
    answer(lab, "w1")
    why = {"failed": True, "errors": ["worker w9 is not here"]}
    assert told(lab)[0][1:] == (200, {"w1": {"a": 1}, "w9": why})


@pytest.mark.parametrize("target", ["w9", "all", "any", '["w8","w9"]', "a b"])
def test_where_nobody_is_meant_the_request_is_refused(target: str) -> None:
    lab = Lab()
    ask(lab, target)
    (_, status, body), (_, again, _) = told(lab)
    assert (status, again, body["workers"], bool(body["errors"])) == (400, 400, None, True)


def test_who_does_not_answer_is_not_waited_for_longer_than_the_limit() -> None:
    lab = Lab(Settings(manage_s=3.0))
    lab.ready("w1", "w2")
    ask(lab)
    answer(lab, "w1")
    told(lab)
    lab.wait(2.5, alive=["w1", "w2"])
    assert told(lab) == []
    lab.wait(0.5, alive=["w1", "w2"])
    why = {"failed": True, "errors": ["worker w2 did not answer within 3 s"]}
    assert told(lab)[0][1:] == (200, {"w1": {"a": 1}, "w2": why})
    lab.take("w2")
    answer(lab, "w2")
    assert told(lab) == []
    assert [dropped.kind for dropped in lab.reported(Dropped)] == ["forged"]
    assert len(lab.engine.errands) == 0


def test_where_nobody_answers_the_status_is_408() -> None:
    lab = Lab(Settings(manage_s=3.0))
    lab.ready("w1")
    ask(lab)
    lab.wait(3, alive=["w1"])
    assert [status for _, status, _ in told(lab)] == [202, 408, 408]


def test_a_worker_that_is_lost_is_not_waited_for() -> None:
    lab = Lab()
    lab.ready("w1", "w2")
    ask(lab)
    lab.say("w2", "worker", Disconnect("svc"))
    answer(lab, "w1")
    why = {"failed": True, "errors": ["worker w2 has left"]}
    assert told(lab)[-1][1:] == (200, {"w2": why, "w1": {"a": 1}})


@pytest.mark.parametrize(
    ("worker", "uuid", "client"), [("w2", "m1", b"admin"), ("w1", "m2", b"admin"), ("w1", "m1", b"c9")]
)
def test_a_forged_answer_reaches_nobody(worker: str, uuid: str, client: bytes) -> None:
    lab = Lab()
    lab.ready("w1", "w2")
    ask(lab, "w1")
    told(lab)
    answer(lab, worker, uuid=uuid, client=client)
    assert (told(lab), lab.take("c9")) == ([], [])
    assert [dropped.kind for dropped in lab.reported(Dropped)] == ["forged"]


def test_a_second_answer_reaches_nobody() -> None:
    lab = Lab()
    lab.ready("w1", "w2")
    ask(lab)
    answer(lab, "w1", b"1")
    answer(lab, "w1", b"2")
    answer(lab, "w2", b"3")
    assert told(lab)[-1][2] == {"w1": 1, "w2": 3}
    assert len(lab.reported(Dropped)) == 1


def test_a_repeated_request_is_asked_once() -> None:
    lab = Lab()
    lab.ready("w1")
    ask(lab)
    ask(lab)
    assert len(lab.take("w1")) == 1
    answer(lab, "w1")
    assert [status for _, status, _ in told(lab)] == [202, 200, 200]


def test_a_request_with_the_uuid_of_a_job_cannot_end_it() -> None:
    lab = Lab()
    lab.ready("w1")
    lab.post("j1")
    ask(lab, "w1", uuid="j1")
    assert [status for _, status, _ in told(lab)] == [400, 400]
    assert [type(said) for said in lab.take("w1")] == [Post]


def test_an_answer_to_another_client_s_request_is_no_result_of_a_job() -> None:
    lab = Lab()
    lab.ready("w1")
    ask(lab, "w1", uuid="j1")
    lab.post("j1")
    lab.take("c1")
    answer(lab, "w1", uuid="j1")
    assert lab.take("c1") == []
    lab.respond("w1")
    assert lab.told("c1") == [(200, json.loads(result("w1")))]


def test_only_who_may_manage_asks_workers() -> None:
    class Admins(Everyone):
        def may_manage(self, user: str, task: str) -> bool:
            return (user, task) == ("ann", "show_broker")

    lab = Lab(access=Admins())
    lab.ready("w1")
    ask(lab, user="bob")
    ask(lab, user="ann", body=b'{"task":"shutdown"}')
    assert [status for _, status, _ in told(lab)] == [400] * 4
    assert lab.take("w1") == []
    ask(lab, user="ann")
    assert [status for _, status, _ in told(lab)] == [202]


def test_the_worker_s_own_status_is_passed_on() -> None:
    lab = Lab()
    lab.ready("w1")
    ask(lab)
    answer(lab, "w1", b'{"errors":["no such task"]}', 400)
    assert told(lab)[1:] == [
        (kind, 400, {"w1": {"errors": ["no such task"]}}) for kind in ("Response", "MmiReply")
    ]


@pytest.mark.parametrize("body", [b"", b"{", b"\xff", b"[" * 90_000])
def test_an_answer_that_is_no_json_says_so(body: bytes) -> None:
    lab = Lab()
    lab.ready("w1")
    ask(lab)
    answer(lab, "w1", body)
    assert told(lab)[1][2]["w1"]["errors"] == ["worker w1 answered with what is not JSON"]


@pytest.mark.parametrize("depth", range(940, 1000))
def test_an_answer_that_can_just_be_read_is_passed_on(depth: int) -> None:
    """What nests too deep to be written is copied as it stands, or said to be no JSON; it never ends the broker."""
    lab = Lab()
    lab.ready("w1")
    body = b"[" * depth + b"]" * depth
    ask(lab)
    answer(lab, "w1", body)
    (*_, last) = lab.take("admin")
    assert last.body == b'{"w1":' + body + b"}" or b"not JSON" in last.body


def test_answers_are_bounded() -> None:
    lab = Lab(Settings(open_octets=60, body_octets=100))
    lab.ready("w1", "w2", "w3")
    ask(lab, body=b'{"task":"t"}')
    for worker, size in (("w1", 61), ("w2", 30), ("w3", 30)):
        answer(lab, worker, b'"' + b"x" * (size - 2) + b'"')
    said = told(lab)[-1][2]
    assert [isinstance(said[name], str) for name in ("w1", "w2", "w3")] == [False, True, False]
    ask(lab, uuid="m2", body=b'{"task":"' + b"t" * 60 + b'"}')
    assert told(lab)[0][1] == 400


def test_requests_are_bounded() -> None:
    lab = Lab(Settings(asks=2))
    lab.ready("w1")
    for number in range(3):
        ask(lab, uuid=f"m{number}")
    assert [status for _, status, _ in told(lab)] == [202, 202, 400, 400]


@pytest.mark.parametrize("body", [b"", b"{", b"[1]", b'{"task":5}'])
def test_a_request_that_is_no_task_is_refused(body: bytes) -> None:
    lab = Lab()
    lab.ready("w1")
    ask(lab, body=body)
    assert [status for _, status, _ in told(lab)] == [400, 400]
    assert lab.take("w1") == []


@pytest.mark.parametrize("depth", range(940, 1000))
def test_a_result_that_can_just_be_read_never_ends_the_broker(depth: int) -> None:
    lab = Lab()
    lab.ready("w1")
    lab.post(body=job())
    lab.respond("w1", body=b"[" * depth + b"]" * depth)
    *_, last = lab.take("c1")
    assert last.status in (200, 500)
