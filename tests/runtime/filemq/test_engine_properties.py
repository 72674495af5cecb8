"""Properties of both engines, for any events in any order, with time passing anywhere."""

from __future__ import annotations

from math import inf

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
    Srsly,
    Wat,
)
from specwire.runtime.filemq.codec import Command
from specwire.runtime.filemq.diskwork import (
    BatchDone,
    CompleteFile,
    DiskBatch,
    Held,
    ListHeld,
    Outcome,
    Stored,
    WriteChunk,
    Wrote,
)
from specwire.runtime.kernel.effects import HostEffect
from specwire.runtime.kernel.events import Answered
from tests.examples import examples
from tests.runtime.filemq.client_desk import Actions, ClientDesk, drops
from tests.runtime.filemq.client_desk import sent as sent_up
from tests.runtime.filemq.server_driver import ServerDriver, entry, peered, sent, subscription

TIMES = {"heartbeat": 1.0, "expiry": 1e9, "reconnect": 0.5}
FILES = {f"/{name}": size for name, size in (("a", 0), ("b", 1), ("c", 10), ("d/e", 25), ("d/f", 7))}

pairs = st.lists(
    st.tuples(st.sampled_from(["a", "/c", "RESYNC", "size"]), st.sampled_from(["1", "AA"])), max_size=2
)
commands = st.one_of(
    st.sampled_from([Ohai(), OhaiOk(), IcanhazOk(), Hugz(), HugzOk(), Kthxbai()]),
    st.builds(
        Icanhaz,
        path=st.sampled_from(["/", "/d", "", "/d/../x"]),
        options=pairs.map(tuple),
        cache=pairs.map(tuple),
    ),
    st.builds(Nom, credit=st.integers(0, 2**64 - 1)),
    st.builds(
        Cheezburger,
        sequence=st.integers(0, 5),
        operation=st.sampled_from(Operation).map(int),
        filename=st.sampled_from(["/a", "/b/c", "/../x", ""]),
        offset=st.integers(0, 6),
        headers=pairs.map(tuple),
        chunk=st.binary(max_size=8),
    ),
    st.builds(Srsly, reason=st.text(max_size=5)),
    st.builds(Rtfm, reason=st.text(max_size=5)),
    st.builds(Wat, reason=st.text(max_size=5)),
)
messages = st.one_of(
    commands.map(lambda command: command.encode()),
    st.lists(st.binary(max_size=20), min_size=1, max_size=3),
    st.tuples(st.just(b"\xaa\xa3"), st.binary(max_size=20)).map(lambda parts: [b"".join(parts)]),
)


class Server:
    """A server whose host answers everything at once, and what was sent to its client."""

    def __init__(self, chunk_octets: int = 6) -> None:
        files = (entry(name, size) for name, size in FILES.items())
        self.driver = ServerDriver(*files, chunk_octets=chunk_octets, timers=TIMES)
        self.sent: list[Command] = []

    def perform(self, effects: list[HostEffect]) -> None:
        """Play effects out."""
        self.sent += sent(self.driver.play_out(effects))

    def handle(self, command: Command) -> None:
        """Present a command."""
        self.perform(self.driver.handle(command))

    def content(self) -> int:
        return sum(len(command.chunk) for command in self.sent if isinstance(command, Cheezburger))


@given(st.lists(st.integers(0, 12), max_size=15), st.integers(1, 30))
def test_content_never_exceeds_the_credit(credits: list[int], chunk_octets: int) -> None:
    """After any sequence of NOM exactly the credit, or everything there is, has been sent."""
    server = Server(chunk_octets)
    server.handle(Ohai())
    server.handle(subscription("/", (("RESYNC", "1"),)))
    granted = 0
    for credit in credits:
        server.handle(Nom(credit=credit))
        granted += credit
        assert server.content() == min(granted, sum(FILES.values()))
        assert server.driver.credit() == granted - server.content()


@given(st.lists(st.sampled_from([2**64 - 1, 2**63, 2**62, 1, 0]), max_size=8))
def test_credit_never_wraps(credits: list[int]) -> None:
    """A sum beyond 2^64 - 1 refuses the client; until then it is kept exactly."""
    driver = peered(path=None, credit=0)
    total = 0
    for credit in credits:
        commands = sent(driver.handle(Nom(credit=credit)))
        total += credit
        if total >= 2**64:
            assert isinstance(commands[0], Srsly)
            return
        assert driver.credit() == total


events = st.one_of(messages, st.sampled_from(["tick", "publish", "withdraw", "subscribe", "held", "close"]))


@settings(deadline=None)
@given(st.lists(events, max_size=20))
def test_server_takes_anything_and_keeps_the_dialog(story: list[list[bytes] | str]) -> None:
    """Any octets and any changes are handled; a command that the dialog forbids would be an OutOfTurnError."""
    server = Server()
    driver = server.driver
    server.perform(driver.receive(Ohai().encode()))
    for now, event in enumerate(story, start=1):
        driver.now = float(now)
        match event:
            case list(frames):
                server.perform(driver.receive(frames))
            case "publish":
                server.perform(driver.publish(entry("/c", 3, "AB")))
            case "withdraw":
                server.perform(driver.withdraw("/c"))
            case "close":
                server.perform(driver.stop())
                return
        server.perform(driver.tick(now + 0.5))


@settings(max_examples=examples(30))
@given(st.data())
def test_ticks_between_commands_change_nothing(data: st.DataObject) -> None:
    """The same commands, differently interleaved with ticks, lead to the same content and credit."""
    story: list[Command] = [
        Ohai(),
        Nom(credit=3),
        Icanhaz(path="/d", options=(("RESYNC", "1"),), cache=(("f", "AA"),)),
        Nom(credit=9),
        Icanhaz(path="/", options=(("RESYNC", "1"),), cache=(("/c", "AA"),)),
        Nom(credit=100),
    ]

    def play(ticks: list[int]) -> tuple[list[Command], int]:
        server = Server()
        for command, count in zip(story, ticks, strict=True):
            server.handle(command)
            for _ in range(count):
                server.perform(server.driver.tick(server.driver.now + 1.0))
        commands: list[Command] = [command for command in server.sent if not isinstance(command, Hugz)]
        return commands, server.driver.credit()

    ticks = data.draw(st.lists(st.integers(0, 3), min_size=len(story), max_size=len(story)))
    assert play(ticks) == play([0] * len(story))


class Disk:
    """Performs a client's orders when told, batch by batch, and keeps what the files became."""

    def __init__(self) -> None:
        self.files: dict[str, int] = {}
        self.written = 0

    def perform(self, batch: DiskBatch) -> BatchDone:
        outcomes: list[Outcome] = []
        for order in batch.orders:
            match order:
                case WriteChunk(connection=connection, chunk=chunk):
                    self.written += len(chunk)
                    outcomes.append(Wrote(connection, len(chunk)))
                case ListHeld(connection=connection, path=path):
                    outcomes.append(Held(connection, path, {}))
                case CompleteFile(connection=connection, name=name, size=size):
                    self.files[name] = size
                    outcomes.append(Stored(connection, name, size, "AA", True))
        return BatchDone(outcomes, pending=False)


@settings(deadline=None)
@given(st.data(), st.integers(1, 40), st.integers(1, 30))
def test_two_engines_transfer_everything(data: st.DataObject, window_octets: int, chunk_octets: int) -> None:
    """However messages, disk work and ticks interleave, every file arrives, and the window is kept."""
    server = Server(chunk_octets)
    desk = ClientDesk("/", window_octets=window_octets, timers=TIMES)
    desk.is_held = True
    disk = Disk()
    to_server: list[Command] = []
    granted = arrived = 0

    def perform(actions: Actions) -> None:
        assert drops(actions) == 0
        to_server.extend(sent_up(actions))

    perform(desk.start())
    for step in range(3000):
        is_due = desk.engine.deadline() == -inf
        waiting = (("up", to_server), ("down", server.sent), ("disk", desk.asked), ("tick", is_due))
        choices = [name for name, some in waiting if some]
        if not choices:
            break
        match data.draw(st.sampled_from(choices)) if step < 60 else choices[0]:
            case "up":
                command = to_server.pop(0)
                granted += command.credit if isinstance(command, Nom) else 0
                server.handle(command)
            case "down":
                command = server.sent.pop(0)
                arrived += len(command.chunk) if isinstance(command, Cheezburger) else 0
                perform(desk.receive(command))
            case "disk":
                batch, desk.asked = desk.asked, None
                assert batch is not None
                perform(desk.present(Answered(0, disk.perform(batch)), 0.0))
            case "tick":
                perform(desk.tick(0.0))
        on_the_way = sum(len(c.chunk) for c in server.sent if isinstance(c, Cheezburger))
        assert arrived + on_the_way <= granted
        assert on_the_way + arrived - disk.written <= window_octets
    assert disk.files == FILES


@settings(deadline=None)
@given(st.lists(events, max_size=20))
def test_client_takes_anything_and_keeps_the_dialog(story: list[list[bytes] | str]) -> None:
    """Any octets and any requests give effects, and no name that leaves the inbox reaches the disk."""
    desk = ClientDesk("/", window_octets=20, timers=TIMES)
    desk.start()
    desk.receive(OhaiOk())
    for now, event in enumerate(story):
        actions = [*desk.tick(now + 0.5)]
        match event:
            case list(frames):
                actions += desk.receive_frames(frames, float(now))
            case "subscribe":
                actions += desk.subscribe("/d", float(now))
            case "held":
                actions += desk.settle(Held(1, "/", {"/a": "AA"}), float(now))
            case "close":
                actions += desk.stop(float(now))
        names = [action.name for action in actions if isinstance(action, WriteChunk | CompleteFile)]
        assert set(names) <= {"/a", "/b/c"}
