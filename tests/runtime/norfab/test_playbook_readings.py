"""The readings of the specification's contradictions (facts/norfab.md), one test for each that the engine carries out.

1, 2, 3, 4 and 14 are also in `test_wire`; 28 (what is stored moves to another broker) is `test_durability`'s.
"""

from __future__ import annotations

import json

import pytest

from specwire.runtime.norfab.commands import (
    Delete,
    Disconnect,
    Get,
    Keepalive,
    Mmi,
    MmiReply,
    Open,
    Post,
    Ready,
    Response,
)
from specwire.runtime.norfab.events import JobRedispatched, Refused
from specwire.runtime.norfab.limits import Settings
from specwire.runtime.norfab.wire import Dialects, encode
from tests.runtime.norfab.scripted import START, Lab, job, result


def test_1_both_dialects_on_one_broker() -> None:
    """A worker that writes as deployed ones do works for a client that writes by the specification."""
    lab, dialects = Lab(), Dialects()

    def say(peer: bytes, *frames: bytes) -> None:
        received = dialects.decode(peer, [b"", *frames])
        lab.say(peer, received.sender, received.command)

    say(b"w1", b"NFPW01", b"0x01", b"svc")
    say(b"c1", b"NFPC01", b"\x04", b"svc", b"all", b"j1", job())
    written = [
        encode(sent.command, dialects.of(sent.peer, sent.role), "broker", sent.role)[1:3] for sent in lab.sent
    ]
    assert written == [[b"NFPB01", b"\x05"], [b"NFPB01", b"0x04"]]
    lab.sent.clear()
    say(b"w1", b"NFPW01", b"0x05", b"c1", b"", b"j1", b"201", b"{}")
    (sent,) = lab.sent
    assert encode(sent.command, dialects.of(sent.peer, sent.role), "broker", sent.role)[5] == b"202"


def test_2_the_worker_s_leg_has_the_client_s_address_the_client_s_the_service() -> None:
    lab = Lab()
    lab.ready("w1")
    lab.post(client="c\u00e9")
    (to_worker,) = lab.take("w1")
    assert (to_worker.client, to_worker.service) == ("c\u00e9".encode(), "")
    (to_client,) = lab.take("c\u00e9")
    assert (to_client.client, to_client.service) == (b"", "svc")


def test_5_open_is_never_waited_for() -> None:
    lab = Lab()
    lab.ready("w1")
    lab.post()
    lab.respond("w1")
    assert lab.statuses() == [202, 200]


def test_6_delete_drops_cancels_purges_and_always_answers() -> None:
    lab = Lab()
    lab.post("pending")
    lab.take("c1")
    lab.delete("pending")
    assert lab.statuses() == [400, 200]  # the end of the job for who posted it, and the answer
    lab.ready("w1")
    lab.post("running")
    lab.take("w1")
    lab.take("c1")
    lab.delete("running", client="c2")
    assert lab.take("w1") == [Delete("running", client=b"c1")]
    assert lab.told()[0][1]["error"] == "deleted by client c2"
    assert lab.statuses("c2") == [200]
    lab.post("done")
    lab.respond("w1", uuid="done")
    lab.take("c1")
    lab.delete("done")
    lab.delete("done")
    assert lab.statuses() == [200, 200]
    lab.get("done")
    lab.delete("never seen")
    lab.delete("unseen")
    assert lab.statuses() == [400, 400, 400]
    assert lab.engine.jobs.kept_octets == lab.engine.jobs.octets == 0


def test_7_any_command_is_life_and_keepalive_still_goes_out() -> None:
    lab = Lab()
    lab.ready("w1")
    for number in range(20):
        lab.wait(1.0)
        lab.tell("w1", "progress", f"j{number}")
    assert sum(isinstance(said, Keepalive) for said in lab.take("w1")) == 8
    assert lab.engine.registry.workers


def test_9_get_gets_202_with_the_workers_first() -> None:
    lab = Lab()
    lab.ready("w1")
    lab.post()
    lab.respond("w1")
    lab.take("c1")
    lab.get()
    assert lab.told()[0] == (
        202,
        {"workers": ["w1"], "uuid": "j1", "target": "all", "status": "DISPATCHED", "service": "svc"},
    )


def test_10_get_and_delete_with_any_go_to_who_holds_the_uuid() -> None:
    lab = Lab()
    lab.ready("w1", "w2")
    lab.post(target="w2")
    lab.take("w2")
    lab.now += 2
    lab.get(target="any")
    assert (lab.take("w1"), lab.take("w2")) == ([], [Get("j1", client=b"c1")])
    lab.say("c1", "client", Delete("j1", b"{}", "svc", "any"))
    assert (lab.take("w1"), lab.take("w2")) == ([], [Delete("j1", client=b"c1")])


@pytest.mark.parametrize(
    ("target", "workers"),
    [
        ("", ["w1", "w2", "w3"]),
        ("all", ["w1", "w2", "w3"]),
        ("w2", ["w2"]),
        ("w3,w1", ["w3", "w1"]),
        ("w3, w1,w3", ["w3", "w1"]),
        ('["w1","w2"]', ["w1", "w2"]),
        ('["w1"]', ["w1"]),
    ],
)
def test_11_targets(target: str, workers: list[str]) -> None:
    lab = Lab()
    lab.ready("w1", "w2", "w3")
    lab.ready("other", service="another")
    lab.post(target=target)
    assert lab.told()[0][1]["workers"] == workers
    assert sorted(name for name in ("w1", "w2", "w3", "other") if lab.posts(name)) == sorted(workers)


def test_11_missing_names_are_reported_and_end_the_job_explicitly() -> None:
    lab = Lab(Settings(queue_s=10))
    lab.ready("w1")
    lab.post(target="w1,w9")
    ((status, body),) = lab.told()
    assert (status, body["workers"], body["missing"]) == (202, ["w1", "w9"], ["w9"])
    lab.respond("w1")
    lab.take("c1")
    lab.wait(10, alive=["w1"])
    ((status, body),) = lab.told()
    assert (status, body["w9"]["errors"]) == (200, ["w9 did not come within 10 s"])
    assert lab.engine.jobs.by_uuid["j1"].ended


def test_11_a_missing_worker_that_comes_in_time_gets_the_job() -> None:
    lab = Lab()
    lab.ready("w1")
    lab.post(target="w1,w9")
    lab.ready("w9")
    assert lab.posts("w9") == ["j1"]


@pytest.mark.parametrize("target", ["[", '["w1",2]', "[]", "w1,,w2", "any,w1", "w 1", ",", "\u00e9" * 200])
def test_11_a_target_that_is_none_gets_an_error(target: str) -> None:
    lab = Lab()
    lab.ready("w1")
    lab.post(target=target)
    assert lab.statuses() == [400]
    assert lab.posts("w1") == []


@pytest.mark.parametrize("target", ["all", "any", "w1"])
def test_12_without_workers_a_job_waits(target: str) -> None:
    """300 at once, 202 and the job when a worker comes."""
    lab = Lab()
    lab.post(target=target)
    assert lab.told() == [(300, {"worker": "", "uuid": "j1", "service": "svc", "status": "PENDING"})]
    lab.wait(30)
    lab.ready("w1")
    assert lab.told()[0][1]["workers"] == ["w1"]
    assert lab.posts("w1") == ["j1"]


@pytest.mark.parametrize("target", ["all", "any", "w1"])
def test_12_a_wait_without_end_ends_with_408(target: str) -> None:
    lab = Lab()
    lab.post(target=target)
    lab.take("c1")
    lab.wait(60)
    ((status, body),) = lab.told()
    assert (status, body["workers"], body["status"]) == (408, None, "FAILED")
    assert body["error"] == f"no worker of svc for '{target}' within 60 s"
    lab.get()
    assert lab.statuses() == [408]
    assert not lab.engine.registry.services


def test_12_the_queue_has_a_bound() -> None:
    lab = Lab(Settings(waiting_per_service=3))
    for number in range(5):
        lab.post(f"j{number}")
    assert lab.statuses() == [300, 300, 300, 500, 500]


def test_13_only_a_job_for_any_goes_to_another_worker_and_says_so() -> None:
    lab = Lab()
    lab.ready("w1", "w2")
    lab.post(target="any")
    lab.respond("w1", 201)
    assert lab.posts("w2") == []
    lab.take("c1")
    lab.say("w1", "worker", Disconnect("svc"))
    assert lab.posts("w2") == ["j1"]
    event = json.loads(lab.take("c1")[0].body)
    assert event["message"] == "given to w2 (attempt 2): w1 does not have it any more"
    lab.respond("w2")
    assert lab.told() == [
        (200, {"w1": {"result": 5, "failed": False, "errors": [], "worker": "w2", "attempt": 2}})
    ]
    assert lab.reported(JobRedispatched) == [JobRedispatched("j1", "w1", "w2", 2)]


@pytest.mark.parametrize("target", ["all", "w1,w2"])
def test_13_of_every_other_the_loss_is_told_at_once(target: str) -> None:
    lab = Lab()
    lab.ready("w1", "w2")
    lab.post(target=target)
    lab.take("c1")
    lab.perform(lab.engine.unreachable(b"w1", "worker", lab.now))
    ((status, body),) = lab.told()
    assert (status, body["w1"]["failed"], body["w1"]["errors"]) == (
        200,
        True,
        ["worker w1 is not connected any more"],
    )
    assert lab.posts("w2") == ["j1"]
    lab.respond("w2")
    assert lab.told() == [(200, json.loads(result("w2")))]


@pytest.mark.parametrize("body", [b"{}", b'{"w1":{"result":null,"failed":true,"errors":["killed"]}}'])
def test_13_a_job_for_any_that_its_worker_could_not_do_goes_to_another(body: bytes) -> None:
    """ "500: the server cannot complete the request due to some internal error" """
    lab = Lab()
    lab.ready("w1", "w2")
    lab.post(target="any")
    lab.take("c1")
    lab.respond("w1", 500, body=body)
    assert [lab.posts(name) for name in ("w1", "w2")] == [["j1"], ["j1"]]
    assert lab.reported(JobRedispatched) == [JobRedispatched("j1", "w1", "w2", 2)]
    lab.respond("w2")
    ((status, said),) = lab.told()
    assert (status, said["w1"]["worker"], said["w1"]["attempt"]) == (200, "w2", 2)


def test_13_where_there_is_no_other_worker_the_fault_is_the_end() -> None:
    lab = Lab()
    lab.ready("w1")
    lab.post(target="any")
    lab.respond("w1", 500, body=b'{"w1":{"result":null,"failed":true,"errors":["killed"]}}')
    assert lab.statuses() == [202, 500]
    lab.ready("w2")
    lab.post("j2", target="w1")
    lab.respond("w1", 500, uuid="j2")
    assert lab.statuses() == [202, 500]
    assert lab.reported(JobRedispatched) == []


def test_13_a_job_that_no_worker_can_do_ends() -> None:
    lab = Lab(Settings(attempts=3))
    lab.ready("w1", "w2")
    lab.post(target="any")
    for name in ("w1", "w2", "w1"):
        assert lab.posts(name) == ["j1"]
        lab.respond(name, 500)
    assert lab.statuses() == [202, 500]


def test_13_a_job_is_not_given_on_for_ever() -> None:
    lab = Lab(Settings(attempts=3))
    lab.ready("w1", "w2", "w3", "w4")
    lab.post(target="any")
    for name in ("w1", "w2", "w3", "w4"):
        lab.say(name, "worker", Disconnect("svc"))
    ((status, body),) = [said for said in lab.told() if said[0] != 202]
    assert (status, body["error"]) == (500, "worker w3 has left; given up after 3 attempts")


def test_15_one_result_of_each_worker() -> None:
    lab = Lab()
    lab.ready("w1")
    lab.post()
    lab.take("c1")
    lab.respond("w1", body=result("w1", 1))
    lab.respond("w1", body=result("w1", 2))
    assert lab.told() == [(200, json.loads(result("w1", 1)))]


def test_16_ready_again_registers_again() -> None:
    lab = Lab()
    lab.ready("w1")
    lab.post()
    lab.take("w1")
    lab.ready("w1")
    assert lab.take("w1") == [Get("j1", client=b"c1")]  # it may have begun anew: what does it have?
    lab.respond("w1")
    assert lab.statuses() == [202, 200]


def test_16_ready_for_another_service_ends_the_connection() -> None:
    lab = Lab()
    lab.ready("w1")
    lab.ready("w1", service="another")
    assert lab.take("w1") == [Disconnect("another")]
    assert not lab.engine.registry.workers


def test_17_a_client_s_bad_input_gets_an_answer() -> None:
    lab = Lab()
    for uuid, service in (("", "svc"), ("j 1", "svc"), ("j1", ""), ("x" * 256, "svc"), ("j1", "s v c")):
        lab.post(uuid, service=service)
    lab.get("", target="[")
    lab.delete("\u00e9")
    assert lab.statuses() == [400] * 7


@pytest.mark.parametrize("name", [b"\xff\xfe", b"all", b"any", b"a,b", b"[x", b"x" * 256, b"a b", b'"'])
def test_18_names_that_cannot_be_are_refused(name: bytes) -> None:
    lab = Lab()
    lab.say(name, "worker", Ready("svc"))
    assert lab.take(name) == [Disconnect("svc")]
    assert not lab.engine.registry.workers


def test_19_management_has_its_own_command() -> None:
    lab = Lab()
    body = b'{"task":"show_services","kwargs":{},"args":[]}'
    lab.say("c1", "client", Mmi("m1", body, "mmi.service.broker", "all"))
    said = lab.take("c1")
    assert said == [
        Response("m1", 200, b"[]", "mmi.service.broker"),
        MmiReply("m1", 200, b"[]", "mmi.service.broker"),
    ]


def test_20_events_reach_who_waits_for_the_job() -> None:
    lab = Lab()
    lab.ready("w1")
    lab.post()
    lab.take("c1")
    lab.tell("w1", "progress", client=b"somebody else")
    assert len(lab.take("c1")) == 1
    assert lab.take("somebody else") == []


@pytest.mark.parametrize("uuid", ["1", "x" * 255, "!~", "a" * 32])
def test_21_uuids_are_1_to_255_printable_characters(uuid: str) -> None:
    lab = Lab()
    lab.ready("w1")
    lab.post(uuid)
    assert lab.posts("w1") == [uuid]


def test_21_a_duplicate_is_acknowledged_again_and_never_run_again() -> None:
    lab = Lab()
    lab.ready("w1")
    for _ in range(3):
        lab.post()
    assert lab.statuses() == [202, 202, 202]
    assert lab.posts("w1") == ["j1"]
    lab.respond("w1")
    lab.post()
    assert lab.statuses() == [200, 202, 200]
    assert lab.posts("w1") == []


@pytest.mark.parametrize(
    "body", [b"", b"no json", b"[]", b'{"task":1}', b"\xff", b"[" * 100_000, b'{"args":{}}']
)
def test_22_bad_json_gets_an_error_reply(body: bytes) -> None:
    lab = Lab()
    lab.ready("w1")
    lab.post(body=body)
    ((status, said),) = lab.told()
    assert (status, said["status"], said["workers"]) == (400, "FAILED", None)
    assert lab.posts("w1") == []


class Table:
    """Anna may call add, Bert may see Anna's jobs, Carl may only be w1."""

    def may_serve(self, user: str, name: str, service: str) -> bool:
        return (user, name, service) == ("carl", "w1", "svc")

    def may_call(self, user: str, service: str, task: str) -> bool:
        return user in ("anna", "dora") and task in ("add", "")

    def may_see(self, user: str, owner: str) -> bool:
        return user in (owner, "bert")

    def may_manage(self, user: str, task: str) -> bool:
        return user == "root"


def test_23_who_may_do_what() -> None:
    lab = Lab(access=Table())
    lab.ready("w1", user="dora")
    lab.ready("w2", user="carl")
    assert not lab.engine.registry.workers
    lab.ready("w1", user="carl")
    lab.post("j1", user="bert")
    lab.post("j2", user="anna", body=job("erase"))
    assert lab.statuses() == [400, 400]
    lab.post("j3", user="anna")
    assert lab.statuses() == [202]
    lab.get("j3", client="c2", user="bert")
    lab.get("j3", client="c3", user="dora")
    lab.delete("j3", client="c3", user="dora")
    lab.post("j3", client="c3", user="dora")
    assert lab.statuses("c2") == [202, 300]
    assert lab.statuses("c3") == [400, 400, 400]
    lab.say("w1", "worker", Response("j3", 200, result("w1"), client=b"c3"), "carl")
    assert (lab.statuses(), lab.statuses("c2"), lab.statuses("c3")) == ([200], [200], [])
    assert lab.manage("shutdown", user="anna")[0] == 400
    assert lab.stopped is None


def test_24_a_fault_inside_the_broker_is_500() -> None:
    lab = Lab(commits=False)
    lab.ready("w1")
    lab.commit()
    lab.post()
    lab.perform(lab.engine.not_stored(lab.waiting[0].ticket, "the disk is full", START))
    ((status, body),) = lab.told()
    assert (status, body["error"]) == (500, "the broker cannot store the job: the disk is full")
    assert lab.posts("w1") == []
    assert not lab.engine.jobs.by_uuid
    assert not lab.engine.registry.workers["w1"].tasks


def test_25_jobs_are_asynchronous_and_bounded_for_each_client() -> None:
    lab = Lab(Settings(jobs_per_client=3))
    lab.ready("w1")
    for number in range(5):
        lab.post(f"j{number}")
    lab.post("other", client="c2")
    assert lab.statuses() == [202, 202, 202, 500, 500]
    assert lab.statuses("c2") == [202]
    lab.respond("w1", uuid="j0")
    lab.post("j5")
    assert lab.statuses() == [200, 202]


def test_26_disconnect_before_ready_is_valid_and_nothing_follows_it() -> None:
    lab = Lab()
    lab.say("w1", "worker", Disconnect("svc"))
    assert lab.take("w1") == []
    lab.say("w1", "worker", Keepalive("svc"))
    assert lab.take("w1") == [Disconnect("")]  # it speaks without being registered


def test_27_the_specification_s_names_and_the_deployed_ones() -> None:
    lab = Lab(about={"name": "b1"}, shell_tasks={"mmi.service.broker": frozenset({"get_logs"})})
    lab.ready("w1")
    tasks = ["show_broker", "show_workers", "show_clients", "show_services", "get_stats", "get_status"]
    assert [lab.manage(task)[0] for task in [*tasks, "show_broker_version", "disconnect", "restart"]] == [
        200
    ] * 9
    assert lab.manage("no such task")[0] == 400
    lab.say(
        "c1", "client", Get("m2", b'{"task":"get_logs","kwargs":{"last":5}}', "mmi.service.broker", "all")
    )
    (asked,) = lab.asked
    assert (asked.task, asked.kwargs) == ("get_logs", b'{"last":5}')
    for _ in range(2):
        lab.perform(lab.engine.answer(asked.question, 200, b"[]", lab.now))
    assert lab.take("c1") == [Response("m2", 200, b"[]", "mmi.service.broker")]


def test_28_the_broker_answers_whether_a_name_is_taken() -> None:
    """Our extension of OPEN: libzmq ignores a second connection with the routing id of a worker."""
    lab = Lab()
    lab.ready("w1")
    lab.say("\x00random", "worker", Open(b'{"name":"w1"}'))
    assert lab.take("\x00random") == [Open(b'{"taken":true}')]
    assert lab.reported(Refused)[-1].reason == "another worker named w1 is connected"
    lab.say("\x00random", "worker", Open(b'{"name":"w2"}'))
    assert lab.take("\x00random") == [Open()]
    assert len(lab.reported(Refused)) == 1
    assert set(lab.engine.registry.workers) == {"w1"}


def test_29_services_inside_the_broker_are_the_shell_s_and_no_worker_s() -> None:
    lab = Lab(shell_tasks={"fss.service.broker": None, "sid.service.broker": None})
    lab.ready("w1", service="fss.service.broker")
    assert lab.reported(Refused)[0].reason == "fss.service.broker is the broker's own"
    body = b'{"task":"fetch_file","kwargs":{"url":"nf://a"}}'
    lab.say("c1", "client", Get("f1", body, "fss.service.broker", "all"))
    lab.say("c1", "client", Post("f2", body, "fss.service.broker", "all"))
    assert [asked.task for asked in lab.asked] == ["fetch_file", "fetch_file"]


def test_resources_target_workers_and_change_while_they_work() -> None:
    lab = Lab()
    lab.say("w1", "worker", Open(b'{"resources":["r1","r2"]}'))
    lab.ready("w1", "w2")
    lab.post("j1", body=job(resources=["r2"]))
    lab.post("j2", body=job(resources=["r3"]))
    assert (lab.posts("w1"), lab.posts("w2")) == (["j1"], [])
    lab.say("w2", "worker", Open(b'{"resources":["r3"]}'))
    assert lab.posts("w2") == ["j2"]
    rows = lab.manage("show_workers")[1]
    assert {row["name"]: row["resources"] for row in rows} == {"w1": ["r1", "r2"], "w2": ["r3"]}
