"""What a broker does with messages that come together; its sockets are lists, its store is a real one."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import threading
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import pytest

from specwire.runtime.norfab.brokerstore import NAME
from specwire.runtime.norfab.commands import Command, Post
from specwire.runtime.norfab.events import Dropped
from specwire.runtime.norfab.limits import Settings
from specwire.runtime.norfab.records import JobRecord
from specwire.runtime.norfab.rows import JOB, make_row
from specwire.runtime.norfab.serve import NorfabBroker
from specwire.runtime.norfab.serve.entrance import Door, Entrance
from specwire.runtime.norfab.serve.events import BrokerEvent
from specwire.runtime.norfab.serve.order import Mail
from specwire.runtime.norfab.serve.serving import Serving
from specwire.runtime.norfab.wire import EncodeError, encode
from tests.runtime.norfab.scripted import job

DOOR: Door = ("worker", "client")
TIMEOUT_S = 60.0

Sent = list[tuple[bytes, list[list[bytes]]]]


class Wire:
    """In place of the sockets: `sent` is what each call sent to whom."""

    def __init__(self) -> None:
        self.sent: Sent = []
        self.paused = False
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
        """Receive nothing."""
        self.paused = True

    def resume(self) -> None:
        """Receive again."""
        self.paused = False

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


def run(folder: Path, story: Callable[[Serving, Wire], Awaitable[None]], **settings: Any) -> None:
    async def whole() -> None:
        wire, broker = Wire(), NorfabBroker("tcp://127.0.0.1:*", folder, **settings)
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
        while serving._engine.commits:  # that the worker registered is a ticket, too
            await asyncio.sleep(0)
        hear(serving, *(post(f"j{number}") for number in range(5)))
        said = told(await wire.until(10))
        # The number of jobs per commit depends on the writer thread; a part has two at most.
        parts = [uuids for peer, uuids in said if peer == b"w1"]
        assert [uuid for part in parts for uuid in part] == [b"j0", b"j1", b"j2", b"j3", b"j4"]
        assert max(map(len, parts)) <= 2
        assert said == [(peer, part) for part in parts for peer in (b"w1", b"c1")]

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


def kept_in(folder: Path) -> int:
    """Return how many jobs are in the store."""
    with closing(sqlite3.connect(folder / NAME)) as connection:
        [count] = connection.execute("SELECT count(*) FROM record WHERE kind = ?", (JOB,)).fetchone()
    return int(count)


def statuses(sent: Sent) -> dict[bytes, list[bytes]]:
    """Return which statuses clients were sent of each job."""
    found: dict[bytes, list[bytes]] = {}
    for peer, messages in sent:
        if peer.startswith(b"c"):
            for frames in messages:
                found.setdefault(frames[4], []).append(frames[5])
    return found


@pytest.mark.parametrize("ours", [False, True], ids=["of who listens", "of ours"])
def test_a_fault_in_telling_costs_no_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, ours: bool
) -> None:
    """Neither what is kept nor what is sent: each job that is acknowledged is in the store."""
    faults: list[OSError] = []

    def fail() -> None:
        if faults:
            raise faults.pop()

    async def story(serving: Serving, wire: Wire) -> None:
        hear(serving, ready(b"w1"))
        while serving._engine.commits:
            await asyncio.sleep(0)
        wire.sent.clear()
        faults.append(OSError("no space"))
        refused = "", [b"c2", b"", b"NFPC01", b"0x04", b"svc", b"all", b"bad", b"no JSON"]
        together = [*(post(f"j{number}") for number in range(20)), refused]
        if ours:
            monkeypatch.setattr(serving, "_after", fail)
            with pytest.raises(OSError, match="no space"):
                hear(serving, *together)
        else:
            hear(serving, *together)
        assert faults == [], "that a job was refused was about to be told"
        found = statuses(await wire.until(41))
        assert found.pop(b"bad") == [b"400"]
        assert found == {b"j%d" % number: [b"202"] for number in range(20)}
        assert kept_in(tmp_path) == 20

    run(tmp_path, story, after_events=None if ours else fail)
    assert ours or "who hears of events could not be told" in caplog.text


def test_a_record_that_cannot_be_encoded_costs_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its client hears that the job failed, and why; and it is not dispatched."""

    def fail(record: Any) -> Any:
        if type(record) is JobRecord and record.uuid == "j3":
            raise UnicodeEncodeError("utf-8", "\udc80", 0, 1, "surrogates not allowed")
        return make_row(record)

    monkeypatch.setattr("specwire.runtime.norfab.brokerstore.make_row", fail)

    async def story(serving: Serving, wire: Wire) -> None:
        hear(serving, ready(b"w1"), *(post(f"j{number}") for number in range(10)))
        sent = await wire.until(19)
        expected = {b"j%d" % number: [b"202"] for number in range(10)} | {b"j3": [b"500"]}
        assert statuses(sent) == expected
        [fault] = [frames for _, messages in sent for frames in messages if b"500" in frames]
        assert b"a record cannot be encoded" in fault[-1]
        assert b"j3" not in {uuid for peer, uuids in told(sent) if peer == b"w1" for uuid in uuids}
        assert kept_in(tmp_path) == 9

    run(tmp_path, story)


def test_a_fault_in_one_job_that_was_kept_costs_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Those after it in the same bit, and the bits after that, are told without anything else having to happen."""
    monkeypatch.setattr("specwire.runtime.norfab.serve.serving.TOGETHER", 4)

    def fail() -> None:
        raise ValueError("ours")

    async def story(serving: Serving, wire: Wire) -> None:
        hear(serving, ready(b"w1"))
        commits = serving._engine.commits
        while commits:
            await asyncio.sleep(0)
        hear(serving, *(post(f"j{number}") for number in range(12)))
        tickets = [*commits._pending]
        for at in (1, 2, 5):
            commits._pending[tickets[at]] = (fail, lambda reason: None)
        others = {b"j%d" % number: [b"202"] for number in range(12) if number not in (1, 2, 5)}
        assert statuses(await wire.until(18)) == others

    run(tmp_path, story)
    assert caplog.text.count("a committed record could not be handled") == 3


def test_no_more_of_a_commit_is_told_in_one_turn_than_is_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However large the commit is, others have their turn; all of it is told in the end."""
    monkeypatch.setattr("specwire.runtime.norfab.serve.serving.TOGETHER", 2)
    monkeypatch.setattr("specwire.runtime.norfab.serve.serving.HANDLED", 4)

    async def story(serving: Serving, wire: Wire) -> None:
        hear(serving, ready(b"w1"))
        while serving._engine.commits:
            await asyncio.sleep(0)
        hear(serving, *(post(f"j{number}") for number in range(10)))
        turns: list[int] = []
        while sum(turns) < 20:
            await asyncio.sleep(0)
            sent, wire.sent = wire.sent, []
            if sent:
                turns.append(sum(len(messages) for _, messages in sent))
        assert turns == [8, 8, 4]

    run(tmp_path, story)


def test_a_command_that_cannot_be_sent_costs_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Of the same mail: whether what is in it fits no frame, which is told, or the fault is ours."""
    events: list[BrokerEvent] = []

    def fail(command: Any, *more: Any) -> list[bytes]:
        if type(command) is Post and command.uuid == "j1":
            raise EncodeError(
                protocol="norfab",
                message_name="POST",
                field="uuid",
                frame=3,
                offset=None,
                kind="length",
                expected="36 octets",
                found="2",
                rule="uuid",
            )
        if type(command) is Post and command.uuid == "j2":
            raise ValueError("ours")
        return encode(command, *more)

    monkeypatch.setattr("specwire.runtime.norfab.serve.serving.encode", fail)

    async def story(serving: Serving, wire: Wire) -> None:
        hear(serving, ready(b"w1"))
        while serving._engine.commits:
            await asyncio.sleep(0)
        hear(serving, *(post(f"j{number}") for number in range(4)))
        assert (b"w1", [b"j0", b"j3"]) in told(await wire.until(6))

    run(tmp_path, story, on_event=events.append)
    (dropped,) = (event for event in events if isinstance(event, Dropped))
    assert dropped.reason.startswith("cannot be told Post: ") and "36 octets" in dropped.reason
    assert caplog.text.count("a Post could not be written") == 1


class Insider:
    """In place of a worker inside the broker's process: hears, and cannot handle one job."""

    peer = b"inmate"

    def __init__(self) -> None:
        self.heard: list[Command] = []

    def start(self) -> None:
        """Nothing is to be done."""

    def receive(self, command: Command) -> None:
        """Take a command."""
        if type(command) is Post and command.uuid == "j1":
            raise ValueError("ours")
        self.heard.append(command)

    async def close(self) -> None:
        """Nothing is open."""


def test_a_worker_inside_the_process_hears_all_that_is_in_a_mail(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A fault in one of it costs no other."""

    async def story(serving: Serving, wire: Wire) -> None:
        serving._inmate = insider = Insider()
        commands: list[Command] = [Post(f"j{number}", b"{}") for number in range(3)]
        serving._agenda.add_one(Mail(b"inmate", "worker", commands))
        assert insider.heard == [commands[0], commands[2]]
        assert wire.sent == []

    run(tmp_path, story)
    assert "a Post could not be handled inside the broker" in caplog.text


def test_nothing_is_received_while_too_much_waits_for_the_disk(tmp_path: Path) -> None:
    """Results cannot fill the memory, and a worker that cannot be heard meanwhile is not lost."""
    settings = Settings(waiting_octets=10_000, keepalive_s=0.5, liveness=1)

    async def story(serving: Serving, wire: Wire) -> None:
        hear(serving, ready(b"w1"))
        while serving._engine.commits:
            await asyncio.sleep(0)
        released = threading.Event()
        blocked = asyncio.ensure_future(serving._store.store.call(lambda connection: released.wait(10.0)))
        await asyncio.sleep(0)
        hear(serving, *(post(f"j{number}") for number in range(200)))
        assert wire.paused
        await asyncio.sleep(1.0)
        assert wire.paused
        assert "w1" in serving._engine.registry.workers
        released.set()
        assert await blocked
        while wire.paused:
            await asyncio.sleep(0.01)
        assert statuses(await wire.until(264)) == {b"j%d" % number: [b"202"] for number in range(200)}

    run(tmp_path, story, settings=settings)
