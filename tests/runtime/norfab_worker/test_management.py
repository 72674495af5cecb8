"""``mmi.service.worker``: each of its tasks."""

from __future__ import annotations

import json

import pytest

from specwire.runtime.norfab.commands import Disconnect, Mmi, Open, Ready, Response
from specwire.runtime.norfab.worker import actions
from tests.runtime.norfab_worker.laboratory import Lab, value


def test_show_worker_tells_how_it_is() -> None:
    lab = Lab(resources=["r1"], about={"version": "9"}, brokers=("tcp://here",))
    for number in range(3):
        lab.post(f"j{number}")
    lab.end("j0")
    lab.now += 10
    status, said = lab.manage("show_worker")
    assert status == 200
    wanted = {
        "version": "9",
        "name": "w1",
        "service": "svc",
        "status": "active",
        "uptime": 10.0,
        "broker": "tcp://here",
        "registered (s)": 10.0,
        "concurrency": 1,
        "jobs running": 1,
        "jobs waiting": 1,
        "jobs kept": 1,
        "jobs completed": 1,
        "jobs failed": 0,
        "resources": ["r1"],
    }
    assert wanted.items() <= said.items()
    assert lab.manage("show_workers") == (200, [said])


def test_show_jobs_tells_of_each_the_newest_first() -> None:
    lab = Lab()
    for number in range(4):
        lab.post(f"j{number}", task=f"t{number}")
    lab.end("j0", value(1))
    lab.fail("j1", "boom")
    lab.delete("j3")
    _, rows = lab.manage("show_jobs")
    assert [(row["uuid"], row["task"], row["state"]) for row in rows] == [
        ("j3", "t3", "DELETED"),
        ("j2", "t2", "STARTED"),
        ("j1", "t1", "FAILED"),
        ("j0", "t0", "COMPLETED"),
    ]
    assert rows[2]["failure"] == "boom"
    assert [row["uuid"] for row in lab.manage("show_jobs", state="FAILED")[1]] == ["j1"]
    assert [row["uuid"] for row in lab.manage("show_jobs", uuid="j0")[1]] == ["j0"]
    assert [row["uuid"] for row in lab.manage("show_jobs", limit=1)[1]] == ["j3"]
    assert lab.manage("show_jobs", limit="many") == (400, {"errors": ["limit is a number of jobs"]})


def test_show_clients_and_show_broker() -> None:
    lab = Lab()
    lab.post("j0", client=b"alice")
    lab.post("j1", client=b"\xff")
    assert lab.manage("show_clients")[1] == [{"name": "alice", "jobs": 1}, {"name": "\\xff", "jobs": 1}]
    assert lab.manage("show_broker")[1]["registered"] is True


def test_resources_change_at_run_time_and_the_broker_is_told() -> None:
    lab = Lab(resources=["r1"])
    assert lab.manage("show_resources") == (200, ["r1"])
    lab.take()
    lab.say(Mmi("m1", b'{"task":"set_resources","kwargs":{"resources":["r2","r3"]}}', client=b"boss"))
    assert lab.sent == [
        Open(b'{"resources":["r2","r3"]}'),
        Response("m1", 200, b'["r2","r3"]', client=b"boss"),
    ]
    assert lab.engine.resources == ("r2", "r3")
    lab.take()
    lab.perform(lab.engine.set_resources(["r4"], lab.now))
    assert lab.take() == [Open(b'{"resources":["r4"]}')]
    lab.perform(lab.engine.set_resources(["r4"], lab.now))
    assert lab.take() == []
    lab.say(Disconnect("svc"))
    lab.wait(1)
    assert lab.take()[0] == Open(b'{"resources":["r4"]}')


@pytest.mark.parametrize("wanted", [None, "r1", [1], {"a": 1}])
def test_resources_that_are_none_are_refused(wanted: object) -> None:
    lab = Lab(resources=["r1"])
    assert lab.manage("set_resources", resources=wanted) == (
        400,
        {"errors": ["resources is a list of names"]},
    )
    assert lab.engine.resources == ("r1",)


def test_list_tasks() -> None:
    lab = Lab(tasks=lambda: [{"name": "add"}])
    assert lab.manage("list_tasks") == (200, [{"name": "add"}])


def test_disconnect_answers_leaves_and_comes_back() -> None:
    lab = Lab()
    lab.post()
    assert lab.manage("disconnect") == (200, {"status": "reconnecting"})
    assert lab.take()[-1] == Disconnect("svc")
    assert not lab.connected
    lab.wait(1.0)
    assert lab.take() == [Open(), Ready("svc")]
    lab.end()
    assert lab.runs() == ["j1"]


def test_shutdown_answers_and_stops_when_what_runs_has_ended() -> None:
    lab = Lab()
    lab.post()
    assert lab.manage("shutdown") == (200, {"status": "stopping"})
    assert lab.stopped is None
    lab.end()
    assert lab.stopped == actions.Stopped(False, "management said shutdown")


def test_restart_answers_and_begins_anew() -> None:
    lab = Lab()
    assert lab.manage("restart") == (200, {"status": "restarting"})
    assert lab.stopped == actions.Stopped(True, "management said restart")


@pytest.mark.parametrize("body", [b"", b"\xff", b"[]", b'{"task": 5}', b'{"task":"show_worker","kwargs":[]}'])
def test_a_body_that_is_no_request_is_refused(body: bytes) -> None:
    lab = Lab()
    lab.say(Mmi("m1", body, client=b"boss"))
    [reply] = lab.sent
    assert isinstance(reply, Response) and reply.status == 400
    assert json.loads(reply.body)["errors"]


def test_an_unknown_task_is_refused_with_those_there_are() -> None:
    status, said = Lab().manage("explode")
    assert status == 400
    assert said["errors"][0].startswith("Unsupported task 'explode': there are show_worker, ")


def test_an_answer_that_is_no_json_is_500() -> None:
    lab = Lab(about={"odd": object()})
    assert lab.manage("show_worker")[0] == 500
