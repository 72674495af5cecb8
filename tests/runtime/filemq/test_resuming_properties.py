"""Two engines and a real inbox, interrupted anywhere: every file arrives, and no kept octet is sent twice."""

from __future__ import annotations

import hashlib
import os
from math import inf
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from specwire.generated.filemq import Cheezburger, Operation
from specwire.runtime.filemq.catalogue import CheckPart, ReadChunk
from specwire.runtime.filemq.codec import Command
from specwire.runtime.filemq.diskwork import BatchDone, Held
from specwire.runtime.filemq.inbox import Inbox
from specwire.runtime.filemq.names import covers
from specwire.runtime.filemq.status import Phase
from specwire.runtime.kernel.effects import HostEffect
from specwire.runtime.kernel.events import Answered, PeerId
from tests.examples import examples
from tests.runtime.filemq.client_desk import Actions, ClientDesk, connects
from tests.runtime.filemq.client_desk import sent as sent_up
from tests.runtime.filemq.inboxes import perform
from tests.runtime.filemq.server_driver import ServerDriver, entry, sent

TIMES = {"heartbeat": 1e9, "expiry": 1e9, "reconnect": 0.5}
KEEP_FROM = 8
NAMES = ("/a", "/d/b", "/d/c", "/z")
HIDDEN = ".specwire-inbox"


def sha1(content: bytes) -> str:
    return hashlib.sha1(content).hexdigest().upper()


class World:
    """A server, a client with its inbox, and what is on the way between them."""

    def __init__(self, folder: Path, paths: list[str], chunk_octets: int) -> None:
        self.folder, self.paths, self.chunk_octets = folder, paths, chunk_octets
        self.files: dict[str, bytes] = {}
        self.now = 0.0
        self.connections = 0
        self.up: list[Command] = []
        self.down: list[Command] = []
        self.kept: Held | None = None
        self.start_server()
        self.start_client()

    # ---- the server

    def start_server(self) -> None:
        files = (entry(name, len(content), sha1(content)) for name, content in self.files.items())
        self.server = ServerDriver(*files, chunk_octets=self.chunk_octets, timers=TIMES)
        self.server.now = self.now

    @property
    def peer(self) -> PeerId:
        return PeerId("clients", b"%d" % self.connections)

    def publish(self, name: str, content: bytes) -> None:
        self.files[name] = content
        self.serve(self.server.publish(entry(name, len(content), sha1(content))))

    def withdraw(self, name: str) -> None:
        if self.files.pop(name, None) is not None:
            self.serve(self.server.withdraw(name))

    def serve(self, effects: list[HostEffect]) -> None:
        """Answer everything at once, as the files are now."""

        def read(request: ReadChunk) -> bytes:
            return self.files[request.entry.name][request.offset : request.offset + request.size]

        def digest(request: CheckPart) -> str:
            return sha1(self.files[request.entry.name][: request.size])

        self.down += sent(self.server.play_out(effects, octets=read, digest=digest), self.peer)

    # ---- the client

    def start_client(self) -> None:
        self.inbox = Inbox(self.folder, sync=False)
        self.inbox.open()
        self.client = ClientDesk(*self.paths, window_octets=40, timers=TIMES, resume_from_octets=KEEP_FROM)
        self.client.is_held = True
        self.act(self.client.start(self.now))

    def act(self, actions: Actions) -> None:
        if connects(actions):
            self.connections += 1
            self.up, self.down, self.kept = [], [], None
        self.up += sent_up(actions)

    def work(self) -> None:
        """Do the disk work that was handed over, and everything that this brings."""
        while (batch := self.client.asked) is not None:
            self.client.asked = None
            outcomes = perform(self.inbox, *batch.orders)
            for outcome in outcomes:
                if isinstance(outcome, Held) and outcome.unfinished is not None and self.kept is None:
                    self.kept = outcome
            self.act(self.client.present(Answered(0, BatchDone(outcomes, pending=False)), self.now))

    def deliver(self) -> None:
        command = self.down.pop(0)
        if isinstance(command, Cheezburger) and command.operation == Operation.CREATE:
            self.check(command)
        self.act(self.client.receive(command, self.now))

    def check(self, command: Cheezburger) -> None:
        """Of a file that is as it was, nothing is sent that the inbox has told to hold."""
        left = self.kept.unfinished if self.kept is not None else None
        if left is None or command.filename != left.name:
            return
        whole = self.files.get(left.name, b"")
        if sha1(whole) == dict(command.headers)["sha-1"] and sha1(whole[: left.size]) == left.sha1:
            assert command.offset >= left.size
        self.kept = None

    # ---- what happens

    def cut(self) -> None:
        self.serve(self.server.leave("cut", peer=self.peer))
        self.now += 2e9
        self.server.now = self.now
        self.act(self.client.tick(self.now))
        while self.client.phase is Phase.WAITING:
            self.now += 10.0
            self.act(self.client.tick(self.now))

    def restart_server(self) -> None:
        self.start_server()
        self.cut()

    def stop_client(self, *, killed: bool, damaged: bool = False) -> None:
        self.serve(self.server.leave("stopped", peer=self.peer))
        self.now += 10.0
        self.server.now = self.now
        if killed:
            os.close(self.inbox._own)
            os.close(self.inbox._root)
        else:
            self.act(self.client.stop(self.now))
            self.work()
            self.inbox.close()
        if damaged:
            damage(self.folder)
        self.start_client()

    def go_on(self) -> bool:
        """Let one thing that waits happen; False where nothing does."""
        if self.client.engine.deadline() == -inf:
            self.act(self.client.tick(self.now))
        if self.client.asked is not None:
            self.work()
        elif self.up:
            self.serve(self.server.handle(self.up.pop(0), peer=self.peer))
        elif self.down:
            self.deliver()
        else:
            return False
        return True

    def settle(self) -> None:
        for _ in range(30):
            steps = 0
            while self.go_on():
                steps += 1
                assert steps < 5000, "it goes on and on"
            if self.held() == self.wanted():
                return
            self.now += 60.0
            self.act(self.client.tick(self.now))
        pytest.fail(f"held {self.held()}, wanted {self.wanted()}")

    def held(self) -> dict[str, bytes]:
        files = (path for path in self.folder.rglob("*") if path.is_file() and HIDDEN not in path.parts)
        return {f"/{path.relative_to(self.folder)}": path.read_bytes() for path in files}

    def wanted(self) -> dict[str, bytes]:
        return {
            name: content
            for name, content in self.files.items()
            if any(covers(path, name) for path in self.paths)
        }


contents = st.builds(
    lambda seed, size: bytes((seed + n * n) % 251 for n in range(size)),
    st.integers(0, 3),
    st.integers(0, 120),
)
happenings = st.one_of(
    st.integers(1, 30).map(lambda steps: ("go on", steps)),
    st.sampled_from([("cut", 0), ("restart server", 0), ("stop", 0), ("kill", 0), ("damage", 0)]),
    st.tuples(st.just("publish"), st.sampled_from(NAMES), contents),
    st.tuples(st.just("grow"), st.sampled_from(NAMES)),
    st.tuples(st.just("withdraw"), st.sampled_from(NAMES)),
)


def happen(world: World, what: tuple[object, ...]) -> None:
    match what:
        case ("go on", int(steps)):
            for _ in range(steps):
                world.go_on()
        case ("cut", _):
            world.cut()
        case ("restart server", _):
            world.restart_server()
        case ("stop", _):
            world.stop_client(killed=False)
        case ("kill", _):
            world.stop_client(killed=True)
        case ("damage", _):
            world.stop_client(killed=True, damaged=True)
        case ("publish", str(name), bytes(content)):
            world.publish(name, content)
        case ("grow", str(name)):
            world.publish(name, world.files.get(name, b"") + b"and more")
        case ("withdraw", str(name)):
            world.withdraw(name)


def damage(folder: Path) -> None:
    """Change an octet of what lies unfinished, where its length tells nothing."""
    for path in (folder / HIDDEN).glob("unfinished-*"):
        if path.suffix != ".name" and (octets := path.read_bytes()):
            path.write_bytes(bytes([octets[0] ^ 1]) + octets[1:])


@settings(deadline=None, max_examples=examples(60), suppress_health_check=[HealthCheck.too_slow])
@given(
    paths=st.sampled_from([["/"], ["/d"], ["/d", "/z"], ["/z", "/d"]]),
    chunk_octets=st.integers(1, 30),
    first=st.dictionaries(st.sampled_from(NAMES), contents, min_size=1),
    story=st.lists(happenings, max_size=14),
)
def test_interrupted_anywhere_everything_arrives(
    tmp_path_factory: pytest.TempPathFactory,
    paths: list[str],
    chunk_octets: int,
    first: dict[str, bytes],
    story: list[tuple[object, ...]],
) -> None:
    world = World(tmp_path_factory.mktemp("inbox"), paths, chunk_octets)
    for name, content in first.items():
        world.publish(name, content)
    for what in story:
        happen(world, what)
    world.settle()
    world.client.stop(world.now)
    world.inbox.close()
    assert {*os.listdir(world.folder / HIDDEN)} <= {"journal", "trash"}
