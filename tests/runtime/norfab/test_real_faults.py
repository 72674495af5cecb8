"""Each fault of the real implementation that facts/norfab.md lists, as far as it is the broker's: not ours.

Not here: the inventory whose layers leak and ``nf://../outside.txt`` are faults of services of the shell, any random CURVE
key is one of the socket's.
"""

from __future__ import annotations

import json

import pytest

from specwire.generated.errors import DecodeError
from specwire.runtime.norfab.commands import Disconnect, Event, Get, Keepalive, Ready, Response, Stream
from specwire.runtime.norfab.events import Dropped, Refused
from specwire.runtime.norfab.wire import decode
from tests.runtime.norfab.scripted import Lab, result


def test_a_worker_killed_with_seven_jobs() -> None:
    """There: all seven stay STARTED for ever. Here: those for any go to another worker, of the others the loss is told."""
    lab = Lab()
    lab.ready("w1", "w2")
    for number in range(7):
        lab.post(f"j{number}", target="w1" if number < 3 else "any")
        lab.respond("w1", 201, f"j{number}")
    theirs = set(lab.engine.registry.workers["w1"].tasks)
    lab.take("c1")
    lab.wait(15, alive=["w2"])
    failed = [body for status, body in lab.told() if status == 500]
    assert [body["error"] for body in failed] == ["worker w1 was silent for 15 s"] * 3
    assert set(lab.posts("w2")) >= theirs - {"j0", "j1", "j2"}
    for number in range(3, 7):
        lab.respond("w2", uuid=f"j{number}")
    assert all(job.ended for job in lab.engine.jobs.by_uuid.values())


def test_a_broker_killed_in_mid_job_and_back_after_a_second() -> None:
    """There: the job fails for good, workers need 13 s. Here: the first sign of a worker makes it register again."""
    lab = Lab()
    lab.ready("w1")
    lab.post()
    lab.respond("w1", 201)
    lab = Lab(records=lab.records, now=lab.now + 1)
    lab.respond("w1")  # the worker has not noticed
    assert lab.take("w1") == [Disconnect("")]
    lab.ready("w1")
    assert lab.take("w1") == [Get("j1", client=b"c1")]
    lab.respond("w1")
    assert lab.told() == [(200, json.loads(result("w1")))]


@pytest.mark.parametrize("command", [b"0x01", b"\x01"])
def test_three_frames_of_ready(command: bytes) -> None:
    """There they kill the broker."""
    with pytest.raises(DecodeError) as caught:
        decode([b"", b"NFPW01", command])
    lab = Lab()
    lab.ready("w1")
    lab.perform(lab.engine.malformed(b"w2", "worker", str(caught.value), lab.now))
    lab.perform(lab.engine.malformed(b"x", None, "no frames", lab.now))
    assert lab.take("w2") == [Disconnect("")]
    assert lab.take("x") == []
    lab.post()
    assert lab.posts("w1") == ["j1"]


def test_a_registered_worker_that_sends_what_cannot_be_read_begins_anew() -> None:
    lab = Lab()
    lab.ready("w1")
    lab.perform(lab.engine.malformed(b"w1", "worker", "torn", lab.now))
    assert lab.take("w1") == [Disconnect("svc")]
    lab.ready("w1")
    lab.post()
    assert lab.posts("w1") == ["j1"]


def test_a_body_that_is_not_json_never_reaches_a_worker() -> None:
    """There it kills the worker's thread."""
    lab = Lab()
    lab.ready("w1")
    lab.post(body=b"\x80not json")
    assert lab.statuses() == [400]
    lab.post("j2")
    assert lab.posts("w1") == ["j2"]


def test_a_worker_whose_name_is_not_utf_8_does_not_break_all() -> None:
    lab = Lab()
    lab.ready("w1")
    lab.say(b"\xff\xfe", "worker", Ready("svc"))
    lab.post()
    assert lab.told()[0][1]["workers"] == ["w1"]


@pytest.mark.parametrize(
    "forged",
    [
        Response("j1", 200, result("w2", "forged"), client=b"c1"),
        Response("j1", 201, b"{}", client=b"c1"),
        Response("j1", 500, b"{}", client=b"c1"),
        Event("j1", 200, b'{"event_type":"result_ready"}', client=b"c1"),
        Event("j1", 200, b'{"event_type":"progress"}', client=b"c1"),
        Stream("j1", 200, b"forged", client=b"c1"),
        Response("never posted", 200, result("w2"), client=b"c1"),
    ],
)
def test_a_forged_message_reaches_nobody(forged: Response | Event | Stream) -> None:
    """There any worker's RESPONSE reaches any client."""
    lab = Lab()
    lab.ready("w1", "w2")
    lab.post(target="w1")
    lab.take("c1")
    lab.say("w2", "worker", forged)
    assert lab.take("c1") == []
    assert [report.kind for report in lab.reported(Dropped)] in (["forged"], [], ["late"])
    lab.respond("w1")
    assert lab.told() == [(200, json.loads(result("w1")))]


def test_a_worker_speaks_for_itself_only() -> None:
    lab = Lab()
    lab.ready("w1", "w2")
    lab.post()
    lab.take("c1")
    lab.respond("w1", body=b'{"w1":{"result":1},"w2":{"result":"forged"}}')
    assert lab.told() == [(200, {"w1": {"result": 1}})]
    lab.respond("w2", body=b'{"w1":{"result":"forged"}}')
    ((_, body),) = lab.told()
    assert list(body) == ["w2"]


def test_a_late_result_of_a_worker_that_lost_the_job_is_dropped() -> None:
    lab = Lab()
    lab.ready("w1", "w2")
    lab.post(target="any")
    lab.perform(lab.engine.unreachable(b"w1", "worker", lab.now))
    lab.ready("w1")
    lab.take("c1")
    lab.respond("w1")
    assert lab.take("c1") == []
    assert lab.reported(Dropped)[0].kind == "late"


def test_a_second_peer_does_not_take_over_a_worker_s_name() -> None:
    """The socket keeps two connections of one name apart; a name whose key is another user's is refused here."""
    lab = Lab()
    lab.ready("w1", user="anna")
    lab.post()
    lab.take("w1")
    lab.say("w1", "worker", Ready("svc"), "eve")
    lab.say("w1", "worker", Response("j1", 200, result("w1", "forged"), client=b"c1"), "eve")
    lab.say("w1", "worker", Disconnect("svc"), "eve")
    assert lab.take("w1") == []
    assert len(lab.reported(Refused)) == 3
    lab.say("w1", "worker", Response("j1", 200, result("w1"), client=b"c1"), "anna")
    assert lab.told()[-1] == (200, json.loads(result("w1")))


def test_a_duplicate_uuid_gets_an_answer() -> None:
    """There it is dropped without one."""
    lab = Lab()
    lab.ready("w1")
    lab.post()
    lab.post()
    assert lab.statuses() == [202, 202]


def test_a_worker_that_only_responds_is_alive() -> None:
    """There only KEEPALIVE counts as life."""
    lab = Lab()
    lab.ready("w1")
    lab.post()
    for _ in range(10):
        lab.wait(10)
        lab.respond("w1", 300)
    assert "w1" in lab.engine.registry.workers


def test_the_broker_s_disconnect_is_understood_and_the_worker_keeps_its_jobs() -> None:
    """There its frames are swapped and workers ignore it."""
    lab = Lab()
    lab.ready("w1")
    lab.post()
    lab.take("w1")
    lab.take("c1")
    assert lab.manage("disconnect") == (200, {"disconnected": ["w1"]})
    assert lab.take("w1") == [Disconnect("svc")]
    lab.ready("w1")
    assert lab.take("w1") == [Get("j1", client=b"c1")]
    lab.respond("w1")
    assert lab.statuses() == [200]


def test_workers_that_were_told_to_register_again_and_do_not_are_lost() -> None:
    lab = Lab()
    lab.ready("w1")
    lab.post()
    lab.take("c1")
    lab.manage("disconnect", workers="w1")
    lab.say("w1", "worker", Keepalive("svc"))
    lab.wait(15)
    assert [body["error"] for _, body in lab.told()] == ["worker w1 does not come back"]
