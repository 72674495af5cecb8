"""What was recorded of the real broker, through ours: what a peer sent, and what the real one answered to it.

The recorded order is kept. Our broker must send every client and worker the same commands with the same meaning; what it
does otherwise on purpose has a test that says so.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from specwire.generated.errors import DecodeError
from specwire.runtime.kernel.commits import Commit
from specwire.runtime.norfab.actions import Ask, Send
from specwire.runtime.norfab.broker import BrokerEngine
from specwire.runtime.norfab.commands import Post
from specwire.runtime.norfab.wire import Dialects, encode
from tests.generated.vectors import entries, frames_of

VECTORS = entries("norfab-0.25-0.6.json")
VERSIONS = ("v0.25.0", "v0.6.0")

INVENTORY = {"sid.service.broker": None}


class Replay:
    """Our broker with the recorded peers, which say what they said."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.engine = BrokerEngine(now=self.now, shell_tasks=INVENTORY)
        self.dialects = Dialects()
        self.unreadable: list[str] = []
        self.written: list[tuple[bytes, list[bytes]]] = []

    def play(self, entry: dict[str, Any]) -> list[tuple[bytes, list[bytes]]]:
        """Let the peer of a recorded message send it; return what goes out, with routing ids."""
        peer, frames = entry["fields"]["peer"].encode(), list(frames_of(entry))
        before = len(self.written)
        try:
            received = self.dialects.decode(peer, frames)
        except DecodeError as error:
            self.unreadable.append(entry["name"])
            self._perform(self.engine.malformed(peer, None, str(error), self.now))
        else:
            self._perform(self.engine.receive(peer, received.sender, received.command, self.now))
        return self.written[before:]

    def _perform(self, actions: list[Any]) -> None:
        for action in actions:
            if isinstance(action, Send):
                frames = encode(
                    action.command, self.dialects.of(action.peer, action.role), "broker", action.role
                )
                self.written.append((action.peer, frames))
            elif isinstance(action, Commit):
                self._perform(self.engine.stored(action.ticket, self.now))
            elif isinstance(action, Ask):
                self._perform(self.engine.answer(action.question, 200, b'{"service":"echosvc"}', self.now))


def of(version: str, direction: str = "->broker") -> list[dict[str, Any]]:
    return [v for v in VECTORS if v["name"].startswith(version) and v["direction"].endswith(direction)]


def by_name(name: str) -> dict[str, Any]:
    return next(v for v in VECTORS if v["name"] == name)


@pytest.mark.parametrize("version", VERSIONS)
def test_every_recorded_message_is_taken_without_harm(version: str) -> None:
    """All that went to the real broker goes to ours; what neither can read is dropped, and it works on."""
    replay = Replay()
    for entry in of(version):
        replay.play(entry)
    assert all("raw_" in name for name in replay.unreadable)
    replay.play(next(v for v in of(version) if v["fields"].get("command_name") == "READY"))
    body = b'{"task":"add","args":[],"kwargs":{}}'
    replay._perform(replay.engine.receive(b"c9", "client", Post("j9", body, "echosvc", "all"), replay.now))
    assert [peer for peer, _ in replay.written[-3:]].count(b"c9") == 1


def headers(frames: list[bytes]) -> tuple[bytes, ...]:
    return tuple(frames[:3])


@pytest.mark.parametrize("version", VERSIONS)
def test_a_job_as_recorded(version: str) -> None:
    """READY of both workers, POST to all: 202 to the client and POST to the workers, frame by frame as recorded."""
    replay = Replay()
    for entry in [v for v in of(version) if v["fields"].get("command_name") == "READY"][:2]:
        assert replay.play(entry) == []
    post = next(v for v in of(version, "client->broker") if v["fields"].get("command_name") == "POST")
    out = replay.play(post)
    uuid = post["fields"]["uuid"].encode()
    accepted = next(
        list(frames_of(v))
        for v in of(version, "broker->client")
        if v["fields"].get("uuid") == uuid.decode() and v["fields"].get("status") == "202"
    )
    assert out[0][0] == post["fields"]["peer"].encode()
    assert out[0][1][:6] == accepted[:6]
    assert json.loads(out[0][1][6]) == json.loads(accepted[6])
    to_workers = {
        v["fields"]["peer"].encode(): list(frames_of(v))
        for v in of(version, "broker->worker")
        if v["fields"].get("uuid") == uuid.decode() and v["fields"]["command_name"] == "POST"
    }
    assert to_workers
    for peer, frames in out[1:]:
        recorded = to_workers.get(peer, next(iter(to_workers.values())))
        assert frames[2:] == recorded[2:]
        assert frames[1] == recorded[1] or version == "v0.6.0"  # no worker of 0.6 has shown its version yet
    relayed = [
        v
        for v in of(version, "worker->broker")
        if v["fields"].get("uuid") == uuid.decode() and v["fields"]["command_name"] in ("RESPONSE", "EVENT")
    ]
    assert relayed
    for entry in relayed:
        to_client = [frames for peer, frames in replay.play(entry) if peer == post["fields"]["peer"].encode()]
        assert [frames[2] for frames in to_client] in ([frames_of(entry)[2]], [])


def test_management_and_inventory_as_recorded() -> None:
    """An MMI is answered with RESPONSE and MMI, in this order and with these frames."""
    replay = Replay()
    asked, *answers = (
        by_name(f"v0.25.0/startup_or_idle/00{n}/{kind}") for n, kind in enumerate(("MMI", "RESPONSE", "MMI"))
    )
    out = [frames for _, frames in replay.play(asked)]
    assert [frames[:6] for frames in out] == [list(frames_of(answer))[:6] for answer in answers]


def test_version_0_6_asks_for_its_inventory_with_get() -> None:
    replay = Replay()
    (out,) = replay.play(by_name("v0.6.0/001/GET"))
    assert out[1][:6] == list(frames_of(by_name("v0.6.0/002/RESPONSE")))[:6]


def test_a_service_without_workers_is_waited_for_and_not_refused() -> None:
    """Otherwise than recorded: the real broker answers 400 at once; a broker that queues says 300 and then 202, which its clients take."""
    replay = Replay()
    entry = next(v for v in of("v0.25.0", "client->broker") if v["fields"].get("command_name") == "POST")
    (out,) = replay.play(entry)
    assert (out[1][2], out[1][5]) == (b"0x05", b"300")


def test_the_one_octet_form_is_answered_in_kind_and_not_refused() -> None:
    """Otherwise than recorded: the real broker says that it does not support the specification's command."""
    replay = Replay()
    for entry in [v for v in of("v0.25.0") if v["fields"].get("command_name") == "READY"][:2]:
        replay.play(entry)
    out = dict(replay.play(by_name("v0.25.0/raw_onebyte_command_per_spec/441/?")))
    assert out[b"rawcli"][1:3] == [b"NFPB01", b"\x05"]
    assert out[b"rawcli"][5] == b"202"
    assert out[b"w1"][2] == b"0x04"
