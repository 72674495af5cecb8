"""What a broker does with messages that come together; its sockets are lists, its store is a real one."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from specwire.runtime.norfab.serve import NorfabBroker
from specwire.runtime.norfab.serve.entrance import Door, Entrance
from specwire.runtime.norfab.serve.serving import Serving
from tests.runtime.norfab.scripted import job

DOOR: Door = ("worker", "client")
TIMEOUT_S = 60.0

Sent = list[tuple[bytes, list[list[bytes]]]]


class Wire:
    """In place of the sockets: `sent` is what each call sent to whom."""

    def __init__(self) -> None:
        self.sent: Sent = []
        self.routers = dict.fromkeys(DOOR, self)

    def open(self, front: Sequence[str], back: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Listen nowhere."""
        return tuple(front), tuple(back)

    def send_all(self, peer: bytes, messages: Iterable[list[bytes]]) -> None:
        """Send to a peer."""
        self.sent.append((peer, list(messages)))

    def forget(self, peer: bytes) -> None:
        """Nothing waits."""

    def gather(self) -> None:
        """Everything is told as it is sent."""

    def settle(self) -> None:
        """Nothing has gathered."""

    def pause(self) -> None:
        """Nothing comes."""

    async def close(self, *, linger_s: float) -> None:
        """Nothing is open."""

    async def until(self, messages: int) -> Sent:
        """Wait until so many messages were sent; return them, and forget them."""
        while sum(len(each) for _, each in self.sent) < messages:
            await asyncio.sleep(0)
        sent, self.sent = self.sent, []
        return sent


def ready(name: bytes) -> tuple[str, list[bytes]]:
    return "", [name, b"", b"NFPW01", b"0x01", b"svc"]


def post(uuid: str, client: bytes = b"c1") -> tuple[str, list[bytes]]:
    return "", [client, b"", b"NFPC01", b"0x04", b"svc", b"all", uuid.encode(), job()]


def told(sent: Sent) -> list[tuple[bytes, list[bytes]]]:
    """Return whom each call sent what, by the uuids of the jobs: a client's is its sixth frame, as is a worker's."""
    return [
        (peer, [frames[4 if peer.startswith(b"c") else 5] for frames in messages]) for peer, messages in sent
    ]


def run(folder: Path, story: Callable[[Serving, Wire], Awaitable[None]]) -> None:
    async def whole() -> None:
        wire, broker = Wire(), NorfabBroker("tcp://127.0.0.1:*", folder)
        found: list[Serving] = []

        def make(serving: Serving) -> Entrance:
            found.append(serving)
            return cast("Entrance", wire)

        broker._make_entrance = make  # type: ignore[method-assign]
        async with asyncio.timeout(TIMEOUT_S), broker:
            await story(found[0], wire)

    asyncio.run(whole())


def hear(serving: Serving, *messages: tuple[str, list[bytes]]) -> None:
    """All of these come in one wake-up."""
    serving.on_messages(DOOR, messages)
    serving.on_rest()


def test_jobs_that_came_together_are_told_together_to_workers_first(tmp_path: Path) -> None:
    """Each worker has all of them before the client hears that they were accepted, and each in their order."""

    async def story(serving: Serving, wire: Wire) -> None:
        hear(serving, ready(b"w1"), ready(b"w2"))
        hear(serving, *(post(f"j{number}") for number in range(3)))
        uuids = [b"j0", b"j1", b"j2"]
        assert told(await wire.until(9)) == [(b"w1", uuids), (b"w2", uuids), (b"c1", uuids)]

    run(tmp_path, story)


def test_a_large_commit_is_told_bit_by_bit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker has the first jobs, and the client knows of them, before the next ones are sent; none is left out."""
    monkeypatch.setattr("specwire.runtime.norfab.serve.serving.TOGETHER", 2)

    async def story(serving: Serving, wire: Wire) -> None:
        hear(serving, ready(b"w1"))
        while serving._engine.ledger.held:  # that the worker registered is a ticket, too
            await asyncio.sleep(0)
        hear(serving, *(post(f"j{number}") for number in range(5)))
        bits = [[b"j0", b"j1"], [b"j2", b"j3"], [b"j4"]]
        said = told(await wire.until(10))
        assert [uuids for peer, uuids in said if peer == b"w1"] == bits
        assert [uuids for peer, uuids in said if peer == b"c1"] == bits
        assert [peer for peer, _ in said[-2:]] == [b"w1", b"c1"]

    run(tmp_path, story)


def test_a_fault_in_one_message_costs_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It is logged by a digest: what is in the message is nobody's business."""

    async def story(serving: Serving, wire: Wire) -> None:
        hear(serving, ready(b"w1"))
        take = serving._engine.take

        def fail(peer: bytes, sender: Any, command: Any, *more: Any) -> None:
            take(peer, sender, command, *more)
            if command.uuid == "secret":
                raise ValueError("ours")

        monkeypatch.setattr(type(serving._engine), "take", lambda self, *given: fail(*given))
        hear(serving, post("j1"), post("secret"), post("j2"))
        uuids = {uuid for _, each in told(await wire.until(4)) for uuid in each}
        assert {b"j1", b"j2"} <= uuids

    with caplog.at_level(logging.ERROR):
        run(tmp_path, story)
    assert "a message could not be handled (8 frames, SHA-1 " in caplog.text
    assert "secret" not in caplog.text


def test_what_cannot_be_read_is_done_with_at_once_and_in_its_turn(tmp_path: Path) -> None:
    """A worker that sends nonsense after its result has its say before it is turned away."""

    async def story(serving: Serving, wire: Wire) -> None:
        hear(serving, ready(b"w1"), post("j1"))
        await wire.until(2)
        result = b'{"w1":{"result":1,"failed":false,"errors":[]}}'
        answer = ["", [b"w1", b"", b"NFPW01", b"0x05", b"c1", b"", b"j1", b"200", result]]
        nonsense = ["", [b"w1", b"", b"NFPW01", b"0x77", b"svc"]]
        hear(serving, *(cast("tuple[str, list[bytes]]", tuple(each)) for each in (answer, nonsense)))
        sent = dict(await wire.until(2))
        assert sent[b"w1"] == [[b"", b"NFPB01", b"0x03", b"svc"]]
        assert sent[b"c1"][0][3:6] == [b"svc", b"j1", b"200"]

    run(tmp_path, story)
