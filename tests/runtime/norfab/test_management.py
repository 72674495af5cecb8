"""``mmi.service.broker``: what it tells, what it does, and what it refuses."""

from __future__ import annotations

import json

import pytest

from specwire.runtime.norfab.commands import Disconnect, Get, Mmi, MmiReply, Post, Response
from specwire.runtime.norfab.limits import Settings
from tests.runtime.norfab.scripted import Lab, job


def test_show_broker_counts() -> None:
    lab = Lab(about={"name": "b1", "version": "9"})
    lab.ready("w1")
    for uuid in ("j1", "j2", "j3"):
        lab.post(uuid)
    lab.respond("w1", uuid="j1")
    lab.respond("w1", 500, uuid="j2")
    lab.respond("w1", uuid="forged")
    lab.wait(10, alive=["w1"])
    status, shown = lab.manage("show_broker")
    assert status == 200
    expected = {
        "name": "b1",
        "version": "9",
        "status": "active",
        "uptime": 10.0,
        "workers count": 1,
        "services count": 1,
        "clients count": 2,
        "jobs open": 1,
        "jobs kept": 2,
        "jobs completed": 1,
        "jobs failed": 1,
        "messages dropped": 1,
    }
    assert {key: shown[key] for key in expected} == expected


def test_show_workers_as_deployed_clients_read_it() -> None:
    lab = Lab(Settings(window=1))
    assert lab.manage("show_workers") == (200, [{"name": "", "service": "", "status": ""}])
    lab.ready("w1")
    lab.ready("x1", service="other")
    lab.post("j1")
    lab.post("j2")
    lab.wait(3, alive=["w1"])
    _, (row,) = lab.manage("show_workers", service="svc", status="alive")
    assert row == {
        "name": "w1",
        "service": "svc",
        "status": "alive",
        "holdtime": "15.0",
        "keepalives tx/rx": "1 / 6",
        "alive (s)": "3.0",
        "jobs": 1,
        "queued": 1,
        "resources": [],
    }
    assert len(lab.manage("show_workers")[1]) == 2
    assert lab.manage("show_workers", status="dead")[1][0]["name"] == ""


def test_show_clients_and_services() -> None:
    lab = Lab()
    lab.ready("w2", "w1")
    lab.post()
    lab.post("j2", service="waits", client="c2")
    shown = {row["name"]: row for row in lab.manage("show_clients")[1]}
    assert (shown["c1"]["jobs"], shown["c1"]["posts"], shown["c1"]["messages"]) == (1, 1, 1)
    assert lab.manage("show_services")[1] == [
        {"name": "svc", "workers": ["w1", "w2"], "waiting": 0, "jobs": 2},
        {"name": "waits", "workers": [], "waiting": 1, "jobs": 0},
    ]


@pytest.mark.parametrize(("task", "restart"), [("restart", True), ("shutdown", False)])
def test_restart_and_shutdown_answer_and_then_end(task: str, restart: bool) -> None:
    lab = Lab()
    lab.ready("w1")
    assert lab.manage(task)[0] == 200
    assert lab.take("w1") == [Disconnect("svc")]
    assert lab.stopped is not None
    assert lab.stopped.restart is restart
    lab.ready("w1")
    assert lab.take("w1") == [Disconnect("svc")]
    lab.post()
    assert lab.statuses() == [500]


@pytest.mark.parametrize("workers", ["w1", ["w1"], ["w1", 5, "w9"]])
def test_disconnect_of_some(workers: object) -> None:
    lab = Lab()
    lab.ready("w1", "w2")
    assert lab.manage("disconnect", workers=workers) == (200, {"disconnected": ["w1"]})
    assert (lab.take("w1"), lab.take("w2")) == ([Disconnect("svc")], [])


@pytest.mark.parametrize(
    "body", [b"", b"{}", b"[1]", b'{"task":5}', b'{"task":"show_broker","kwargs":5}', b"[" * 90_000]
)
@pytest.mark.parametrize("kind", [Mmi, Get, Post])
def test_a_bad_request_gets_an_answer(body: bytes, kind: type[Mmi | Get | Post]) -> None:
    lab = Lab()
    lab.say("c1", "client", kind(uuid="m", body=body, service="mmi.service.broker"))
    said = lab.take("c1")
    assert [type(command) for command in said] == [Response, MmiReply][: len(said)]
    assert said[0].status == 400
    assert json.loads(said[0].body)["errors"]


def test_kwargs_may_be_null() -> None:
    lab = Lab()
    lab.say("c1", "client", Mmi("m", b'{"task":"show_services","kwargs":null}', "mmi.service.broker"))
    assert lab.statuses() == [200]


def test_management_that_is_not_here_gets_an_answer() -> None:
    lab = Lab()
    lab.say("c1", "client", Mmi("m", b"{}", "mmi.service.nothing"))
    response, reply = lab.take("c1")
    assert (response.status, reply.status) == (400, 400)


def test_questions_to_the_shell_are_bounded() -> None:
    lab = Lab(Settings(asks=2), shell_tasks={"sid.service.broker": None})
    for number in range(4):
        lab.say("c1", "client", Get(f"g{number}", job("get_inventory"), "sid.service.broker"))
    assert (len(lab.asked), lab.statuses()) == (2, [500, 500])
    lab.perform(lab.engine.answer(lab.asked[1].question, 200, b'{"a":1}', lab.now))
    assert lab.take("c1") == [Response("g1", 200, b'{"a":1}', "sid.service.broker")]
    lab.perform(lab.engine.answer(99, 200, b"{}", lab.now))
    assert lab.take("c1") == []
