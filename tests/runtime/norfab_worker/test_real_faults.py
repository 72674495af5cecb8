"""Each fault of the real implementation that facts/norfab.md lists, as far as it is the worker's: not ours.

Seven jobs of a worker that is killed are in `test_restarts`, a task that blocks and plugins of all kinds in `test_running`.
"""

from __future__ import annotations

import json

import pytest

from specwire.generated.errors import DecodeError
from specwire.runtime.norfab import wire
from specwire.runtime.norfab.commands import Disconnect, Keepalive, Open, Ready, Response
from specwire.runtime.norfab.wire import Dialect
from specwire.runtime.norfab.worker.events import Dropped
from tests.runtime.norfab_worker.laboratory import Lab, job, value


def test_a_broker_killed_in_mid_job_and_back_after_a_second() -> None:
    """There the finished job is FAILED for its client for good, and workers need 13 s to register again."""
    lab = Lab()
    lab.post()
    lab.perform(lab.engine.lost("connection reset", lab.now))
    lab.end("j1", value(42))
    lost_at = lab.now
    lab.wait(1.0, alive=False)
    while not lab.connected:
        lab.wait(0.1, alive=False)
    assert lab.now - lost_at < 3
    lab.say(Open())
    lab.get()
    assert lab.ends()[0]["result"] == 42


def test_the_first_word_of_a_new_broker_is_disconnect() -> None:
    """A broker that began anew behind the same connection turns the worker away: it registers at once, on a new socket."""
    lab = Lab()
    lab.post()
    lab.say(Disconnect(""))
    lab.wait(0.2, alive=False)
    assert lab.connected
    assert lab.take()[-1] == Ready("svc")


@pytest.mark.parametrize("body", [b"not json", b"\x80", b'"text"', b"null"])
def test_a_body_that_is_not_json_does_not_kill_the_worker(body: bytes) -> None:
    """There it kills the worker's thread while it looks alive."""
    lab = Lab()
    lab.post(body=body)
    lab.wait(5.1)
    assert lab.sent.count(Keepalive("svc")) == 2
    lab.post("j2")
    assert lab.runs() == ["j2"]


def test_a_duplicate_uuid_is_answered() -> None:
    """There it is dropped without a word."""
    lab = Lab()
    lab.post()
    lab.post()
    assert lab.statuses() == [201, 201]
    assert lab.runs() == ["j1"]


def test_a_disconnect_with_its_frames_swapped_is_dropped_like_any_nonsense() -> None:
    """Deployed brokers send it so to workers that they do not know, after OPEN for one: READY follows all the same."""
    with pytest.raises(DecodeError):
        wire.decode([b"", b"NFPB01", b"svc", b"0x03"])
    lab = Lab(registered=False)
    lab.perform(lab.engine.malformed("svc is no command", lab.now))
    assert lab.connected and lab.reported(Dropped)


def test_jobs_of_a_0_6_broker_are_read() -> None:
    """It writes NFPW01 on what it sends to workers."""
    frames = [b"", b"NFPW01", b"0x04", b"c1", b"", b"j1", job()]
    received = wire.decode(frames)
    lab = Lab()
    lab.say(received.command)
    assert lab.statuses() == [201]


def test_a_result_goes_to_the_address_that_came_with_the_job() -> None:
    """There a worker could answer anybody; here it has only this address, and the broker looks at it again."""
    lab = Lab()
    lab.post("j1", client=b"\x00alice")
    lab.get("j1", client=b"bob")
    lab.end("j1")
    replies = [command for command in lab.sent if isinstance(command, Response)]
    assert [(reply.status, reply.client) for reply in replies] == [
        (201, b"\x00alice"),
        (300, b"bob"),
        (200, b"\x00alice"),
    ]


@pytest.mark.parametrize("dialect", [Dialect.DEPLOYED, Dialect.NORFAB])
def test_what_is_sent_can_be_read(dialect: Dialect) -> None:
    """Three digits, seven frames or more, a JSON body: deployed clients take nothing else."""
    lab = Lab(registered=False)
    lab.post("j1")
    lab.post("j2", client=b"c2")
    lab.get("j2")
    lab.get("j9")
    lab.end("j1")
    lab.delete("j1")
    lab.manage("show_worker")
    lab.post("j3", body=b"nonsense")
    said = [command for command in lab.sent if isinstance(command, Response)]
    assert len(said) >= 1
    for command in said:
        frames = wire.encode(command, dialect, "worker", "broker")
        assert len(frames) == 8 and len(frames[6]) == 3 and frames[6].isdigit()
        assert isinstance(json.loads(frames[7]), dict)
        assert wire.decode(frames).sender == "worker"
