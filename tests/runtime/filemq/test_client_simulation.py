"""The client's engine against a small server, under the simulator: connections are lost at any message.

The server is written here, after FILEMQ v2 and our option RESUME; so is the disk, in memory.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from specwire.generated.filemq import (
    Cheezburger,
    Hugz,
    HugzOk,
    Icanhaz,
    IcanhazOk,
    Kthxbai,
    Nom,
    Ohai,
    OhaiOk,
    Operation,
    Rtfm,
)
from specwire.runtime.filemq.client import ClientEngine
from specwire.runtime.filemq.codec import FILEMQ, Command, FilemqCodec
from specwire.runtime.filemq.connection import ClientOptions
from specwire.runtime.filemq.diskwork import (
    AwaitFiles,
    BatchDone,
    CompleteFile,
    Deleted,
    DeleteFile,
    DiscardFile,
    DiskAction,
    DiskBatch,
    Failed,
    Held,
    KeepFile,
    ListHeld,
    Outcome,
    Stored,
    Unfinished,
    WriteChunk,
    Wrote,
)
from specwire.runtime.filemq.events import Counters, FileResumed, PeerClosed
from specwire.runtime.filemq.status import Phase
from specwire.runtime.kernel.effects import HostEffect, Send, Stop
from specwire.runtime.kernel.events import (
    Called,
    Event,
    MessageReceived,
    PeerDisconnected,
    PeerId,
    Stopping,
)
from specwire.runtime.simulator import Disturbances, Simulator
from tests.examples import examples

ENDPOINT = "tcp://server"
CHUNK = 5
TIMES = {"heartbeat": 1.0, "expiry": 4.0, "reconnect": 0.1}
CALM_AT = 20.0
"""From this time on no connection is lost."""


def sha1(content: bytes) -> str:
    return hashlib.sha1(content).hexdigest().upper()


# ---- a server


@dataclass
class Peering:
    """What a client may still get, and what it is to get."""

    credit: int = 0
    commands: deque[tuple[str, bytes, int]] = field(default_factory=deque)
    sequence: int = 0


class Publisher:
    """Server of one set of files; a call changes it: a name, and its content or None."""

    def __init__(self, files: dict[str, bytes]) -> None:
        self.files = files
        self.peerings: dict[PeerId, Peering] = {}

    def deadline(self) -> float | None:
        """Return None."""
        return None

    def handle(self, event: Event, now: float) -> Iterable[HostEffect]:
        """Answer commands, and send content as far as the credit goes."""
        match event:
            case MessageReceived(peer=peer, message=Ohai()):
                self.peerings[peer] = Peering()
                return [Send(peer, OhaiOk())]
            case MessageReceived(peer=peer, message=message):
                if (peering := self.peerings.get(peer)) is None:
                    return [Send(peer, Rtfm(reason="who are you?"))]
                return [Send(peer, one) for one in self.answer(peer, peering, message)]
            case PeerDisconnected(peer=peer):
                self.peerings.pop(peer, None)
            case Called(request=(name, content)):
                return [*self.change(name, content)]
            case Stopping(reason=reason):
                return [*(Send(peer, Kthxbai()) for peer in self.peerings), Stop(reason)]
        return []

    def answer(self, peer: PeerId, peering: Peering, command: Command) -> Iterator[Command]:
        match command:
            case Hugz():
                yield HugzOk()
            case Kthxbai():
                del self.peerings[peer]
                return
            case Nom(credit=credit):
                peering.credit += credit
            case Icanhaz(path=path, options=options, cache=cache):
                yield IcanhazOk()
                wanted = dict(options)
                if (rest := wanted.get("RESUME")) is not None:
                    size, _, digest = rest.partition(":")
                    content = self.files.get(path, b"")
                    if sha1(content[: int(size)]) == digest:
                        peering.commands.append((path, content, int(size)))
                if "RESYNC" in wanted:
                    held = {"/" + name: digest for name, digest in cache}
                    resumed = {name for name, _, _ in peering.commands}
                    for name, content in self.files.items():
                        if held.get(name) != sha1(content) and name not in resumed:
                            peering.commands.append((name, content, 0))
                    peering.commands.extend((name, b"", -1) for name in held.keys() - self.files.keys())
        yield from self.flush(peering)

    def change(self, name: str, content: bytes | None) -> Iterator[Send]:
        if content is None:
            self.files.pop(name, None)
        else:
            self.files[name] = content
        for peer, peering in self.peerings.items():
            peering.commands.append((name, content or b"", -1 if content is None else 0))
            yield from (Send(peer, command) for command in self.flush(peering))

    def flush(self, peering: Peering) -> Iterator[Command]:
        commands = peering.commands
        while commands:
            name, content, offset = commands[0]
            chunk = content[offset : offset + min(CHUNK, peering.credit)] if offset >= 0 else b""
            if 0 <= offset < len(content) and not chunk:
                return  # no credit
            yield Cheezburger(
                sequence=peering.sequence,
                operation=Operation.CREATE if offset >= 0 else Operation.DELETE,
                filename=name,
                offset=max(offset, 0),
                headers=(("size", str(len(content))), ("sha-1", sha1(content))),
                chunk=chunk,
            )
            peering.sequence += 1
            peering.credit -= len(chunk)
            if chunk:
                commands[0] = name, content, offset + len(chunk)
            else:
                commands.popleft()


# ---- a disk


class Disk:
    """An inbox in memory. Outcomes of completed files come with the next batch."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.part: tuple[str, bytes] | None = None
        self.is_kept = False
        self.late: list[Outcome] = []

    def perform(self, batch: DiskBatch) -> BatchDone:
        outcomes = self.take_late()
        for order in batch.orders:
            outcomes += self.do(order)
        return BatchDone(outcomes, bool(self.late))

    def take_late(self) -> list[Outcome]:
        late, self.late = self.late, []
        return late

    def do(self, order: DiskAction) -> Iterator[Outcome]:
        number = order.connection
        match order:
            case WriteChunk(name=name, offset=offset, chunk=chunk):
                if offset == 0:
                    self.part, self.is_kept = (name, b""), False
                assert self.part is not None and (name, offset) == (self.part[0], len(self.part[1]))
                self.part = name, self.part[1] + chunk
                yield Wrote(number, len(chunk))
            case CompleteFile(name=name, size=size, sha1=announced):
                content = b"" if size == 0 else self.part[1] if self.part else b"?"
                self.part = None
                if (len(content), sha1(content)) != (size, announced):
                    yield Failed(number, name, "has another SHA-1", again=True)
                    return
                self.files[name] = content
                self.late.append(Stored(number, name, size, sha1(content), True))
            case DiscardFile():
                self.part = None
            case KeepFile():
                self.is_kept = True
            case DeleteFile(name=name):
                yield from self.take_late()
                self.files.pop(name, None)
                yield Deleted(number, name)
            case ListHeld(path=path):
                yield from self.take_late()
                part = self.part if self.is_kept else None
                unfinished = part and Unfinished(part[0], len(part[1]), sha1(part[1]))
                yield Held(number, path, {n: sha1(c) for n, c in sorted(self.files.items())}, unfinished)


# ---- runs

NAMES = st.sampled_from(["/a", "/b/c", "/b/d", "/z"])
CONTENTS = st.binary(max_size=60)
CHANGES = st.lists(st.tuples(st.floats(0.0, CALM_AT), NAMES, st.none() | CONTENTS), max_size=6)


class Run:
    """A server and a client under the simulator."""

    def __init__(self, seed: int, lost: float, window_octets: int, files: dict[str, bytes]) -> None:
        self.simulator = Simulator(seed, Disturbances(lost_connections=lost))
        self.publisher, self.disk = Publisher(files), Disk()
        self.identities: list[bytes] = []
        self.engine = ClientEngine(
            ClientOptions(
                endpoint=ENDPOINT,
                paths=["/"],
                timers=TIMES,
                window_octets=window_octets,
                resume_from_octets=2 * CHUNK,
            ),
            new_identity=self.identify,
        )
        self.simulator.add("server", self.publisher, codec(), listeners={"front": ENDPOINT})
        handlers: Mapping[type, Callable[[Any], Any]] = {DiskBatch: self.disk.perform}
        self.client = self.simulator.add("client", self.engine, codec(), handlers=handlers)

    def identify(self) -> bytes:
        self.identities.append(b"\x01%d" % len(self.identities))
        return self.identities[-1]

    def digests(self) -> dict[str, str]:
        return {name: sha1(content) for name, content in self.publisher.files.items()}


def codec() -> FilemqCodec:
    return FilemqCodec(FILEMQ, Counters())


@settings(max_examples=examples(200))
@given(
    seed=st.integers(0, 2**32),
    lost=st.sampled_from([0.0, 0.02, 0.2]),
    window_octets=st.integers(1, 60),
    files=st.dictionaries(NAMES, CONTENTS),
    changes=CHANGES,
)
def test_everything_arrives_however_often_the_connection_is_lost(
    seed: int,
    lost: float,
    window_octets: int,
    files: dict[str, bytes],
    changes: list[tuple[float, str, bytes | None]],
) -> None:
    """In the end the inbox holds what is published, the call says so, and the client stops in good order."""
    run = Run(seed, lost, window_octets, files)
    simulator = run.simulator
    for at, name, content in changes:
        simulator.at(at, partial(simulator.call, "server", (name, content)))
    simulator.run(CALM_AT)
    simulator.disturbances = Disturbances()
    call = simulator.call("client", AwaitFiles(run.digests(), 60.0))
    simulator.run(CALM_AT + 100.0)
    assert run.client.returned[call].error is None
    assert run.disk.files == run.publisher.files
    assert run.engine.phase is Phase.OPEN
    simulator.stop("client")
    simulator.run(CALM_AT + 101.0)
    assert run.client.stopped == "stopped"
    assert run.client.logged(PeerClosed)[-1] == PeerClosed(ENDPOINT, "closed by request", final=True)
    assert PeerId("front", run.identities[-1]) not in run.publisher.peerings, "it has said KTHXBAI"


@settings(max_examples=examples(100))
@given(st.integers(0, 2**32), st.floats(0.0, 2.0))
def test_client_stops_at_any_time(seed: int, at: float) -> None:
    """Everything that was ordered is on the disk then, and nothing is on the way to it."""
    run = Run(seed, 0.1, 30, {"/a": bytes(200), "/b/c": bytes(50)})
    run.simulator.at(at, lambda: run.simulator.stop("client"))
    run.simulator.run(at + 1.0)
    assert run.client.stopped == "stopped"
    assert run.disk.late == []


def test_interrupted_file_continues_under_the_simulator() -> None:
    """Among the runs above some resume; here is one that certainly does."""
    run = Run(1, 0.0, 60, {"/a": bytes(range(200))})
    while not run.disk.is_kept:
        run.simulator.run(run.simulator.now + 0.001)
        assert run.simulator.now < 5.0
    run.simulator.lose_connections("client", "server")
    run.simulator.run(5.0)
    [resumed] = run.client.logged(FileResumed)
    assert resumed.path == "/a" and 0 < resumed.offset < 200
    assert run.disk.files == run.publisher.files
