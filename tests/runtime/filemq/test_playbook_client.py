"""The client's engine at every row of the generated tables, of both dialects and in both readings.

What must come out is written here by hand, from the text of FILEMQ v2 and the reading of its gaps; the tables say
only which rows there are. A row that has no entry here fails.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import pytest

from specwire.generated.dialog import Reading
from specwire.runtime.filemq.diskwork import Held, ListHeld, WriteChunk
from specwire.runtime.filemq.status import Phase
from specwire.runtime.kernel.effects import Connect, DropPeer, Send
from tests.runtime.filemq.client_desk import Actions, ClientDesk
from tests.runtime.filemq.playbook import (
    CONCRETE,
    PROTOCOLS,
    TIMES,
    Play,
    Protocol,
    Row,
    absent_rows,
    path_to,
    rows,
)

SIGNED = b"\xaa\xa3"
WAITING, OPENING, OPEN, ENDED = Phase.WAITING, Phase.OPENING, Phase.OPEN, Phase.ENDED


class ClientPlay(Play):
    """A client with an inbox that holds nothing; its listing of that is asked for and comes when it is told to."""

    own = "C"

    def __init__(self, protocol: Protocol, reading: Reading = "concurrent") -> None:
        super().__init__(protocol, reading)
        self.now = 0.0
        self.connections = self.closes = 0
        self.to_list: list[ListHeld] = []
        self.to_write: list[WriteChunk] = []
        self.desk = ClientDesk("/", timers=TIMES, dialect=self.dialect, window_octets=6)

    def receive(self, frames: Sequence[bytes]) -> None:
        self.perform(self.desk.receive_frames(frames, self.now))

    def perform(self, actions: Actions) -> None:
        for action in actions:
            match action:
                case Send(message=command):
                    self.note_sent(command)
                case ListHeld():
                    self.to_list.append(action)
                case WriteChunk():
                    self.to_write.append(action)
                case Connect():
                    self.connections += 1
                case DropPeer():
                    self.closes += 1

    def bring_about(self, name: str) -> None:
        match name:
            case "Ohai":
                self.perform(self.desk.start(self.now))
            case "Icanhaz":
                listing = self.to_list.pop()
                self.perform(self.desk.settle(Held(listing.connection, listing.path, {}), self.now))
            case "Hugz":
                self.now += TIMES["heartbeat"]
                self.perform(self.desk.tick(self.now))
            case "Kthxbai":
                self.perform(self.desk.stop(self.now))


AT_ONCE = {("S_HUGZ", "C:HugzOk"), ("USE", "C:Nom")}
"""What the client says in the same breath as it hears what brings it to the state."""


def play_to(row: Row) -> ClientPlay:
    """Return an engine in the row's state; for what comes `AT_ONCE`, short of the server's last message."""
    play = ClientPlay(row.protocol, row.reading)
    path = path_to(row)
    play.walk(path[:-1] if row.cell in AT_ONCE else path)
    play.said.clear()
    return play


# ---- what a server may send


class Reaction(NamedTuple):
    """What the client says, where its connection stands then, and whether content goes to the disk."""

    says: tuple[str, ...] = ()
    phase: Phase = OPEN
    writes: bool = False


REACTIONS: Mapping[tuple[str, str], Reaction] = {
    # "The client MUST initiate the transfer of data by sending credit to the server."
    ("C_OHAI", "S:OhaiOk"): Reaction(("Nom",)),
    # "it SHOULD close the connection and if needed, reconnect with new authentication credentials": not with the old
    ("C_OHAI", "S:Srsly"): Reaction(phase=ENDED),
    # "it SHOULD close the connection and not reconnect": of a version, there is no other that we speak
    ("C_OHAI", "S:Rtfm"): Reaction(phase=ENDED),
    # "it MUST not repeat the previous command", which was OHAI
    ("C_OHAI", "S:Wat"): Reaction(phase=ENDED),
    ("C_ICANHAZ", "S:IcanhazOk"): Reaction(),
    ("C_ICANHAZ", "S:Srsly"): Reaction(phase=ENDED),
    # "The client SHALL respond to an RTFM command by closing its DEALER connection and starting a new connection."
    ("C_ICANHAZ", "S:Rtfm"): Reaction(phase=WAITING),
    ("C_ICANHAZ", "S:Wat"): Reaction(phase=ENDED),
    ("C_HUGZ", "S:HugzOk"): Reaction(),
    # "The server SHALL send file content to the client using CHEEZBURGER commands."
    ("USE", "S:Cheezburger"): Reaction(writes=True),
    # "A peer SHALL respond to a HUGZ command with a HUGZ-OK command."
    ("USE", "S:Hugz"): Reaction(("HugzOk",)),
    # The grammar has it and the prose not: the server stops, and is looked for again.
    ("USE", "S:Kthxbai"): Reaction(phase=WAITING),
    ("USE", "S:Srsly"): Reaction(phase=ENDED),
    ("USE", "S:Rtfm"): Reaction(phase=WAITING),
    ("USE", "S:Wat"): Reaction(phase=ENDED),
}
NEVER = {("C_OHAI_2", "S:OhaiOk"): "our client says OHAI once on a connection, so no second answer comes"}

SERVERS_ROWS = [row for protocol in PROTOCOLS for row in rows(protocol) if row.label.startswith("S:")]


@pytest.mark.parametrize("row", [row for row in SERVERS_ROWS if row.cell not in NEVER], ids=str)
def test_what_a_server_may_send_has_its_effect(row: Row) -> None:
    reaction = REACTIONS[row.cell]
    play = play_to(row)
    assert play.present(CONCRETE[row.label[2:]]) is None
    assert tuple(play.said) == reaction.says
    assert play.desk.phase is reaction.phase
    assert play.closes == (reaction.phase is not OPEN)
    assert bool(play.to_write) is reaction.writes
    assert play.faults == []


@pytest.mark.parametrize("row", [row for row in SERVERS_ROWS if REACTIONS.get(row.cell)], ids=str)
def test_a_lost_connection_is_opened_anew_and_an_ended_one_never(row: Row) -> None:
    play = play_to(row)
    play.present(CONCRETE[row.label[2:]])
    phase = play.desk.phase
    if phase is OPEN:
        assert play.connections == 1
        return
    play.said.clear()
    play.session = play.session.__class__("C", row.reading)  # a fresh connection is a dialog of its own
    for _ in range(100):
        play.now += 1.0
        play.perform(play.desk.tick(play.now))
        if play.connections == 2:
            break
    assert (play.connections, play.said) == ((2, ["Ohai"]) if phase is WAITING else (1, []))
    assert play.faults == []


# ---- what a server may not send

UNEXPECTED: Mapping[str, Phase] = {"START": WAITING, "C_OHAI": OPENING, "USE": OPEN, "CLOSED": ENDED}
"""Nothing is said to it and nothing done; the specification has no error that a client could send."""
ERRORS = ("S:Srsly", "S:Rtfm", "S:Wat")


@pytest.mark.parametrize("row", [r for p in PROTOCOLS for r in absent_rows(p, "S")], ids=str)
def test_what_a_server_may_not_send_changes_nothing(row: Row) -> None:
    if row.label in ERRORS and row.state not in ("START", "CLOSED"):
        raise AssertionError(f"an error of the server is in order wherever it may speak: {row}")
    play = play_to(row)
    connections, closes = play.connections, play.closes
    assert play.present(CONCRETE[row.label[2:]]) is not None
    assert play.said == []
    assert play.desk.phase is UNEXPECTED[row.state]
    assert (play.connections, play.closes, play.to_write) == (connections, closes, [])


MALFORMED = {
    "without the signature": [b"\xaa\xa4\x07" + bytes(8)],
    "an empty frame": [b""],
    "an unknown number": [SIGNED + b"\x63"],
    "a short CHEEZBURGER": [SIGNED + b"\x08\x00", b""],
    "a frame too many": [SIGNED + b"\x09", b"more"],
    "WAT without its reason": [SIGNED + b"\x82"],
}


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("state", UNEXPECTED)
@pytest.mark.parametrize("what", MALFORMED)
def test_what_is_no_message_changes_nothing_in_any_state(protocol: Protocol, state: str, what: str) -> None:
    play = play_to(Row(protocol, "concurrent", state, "S:"))
    play.malformed(MALFORMED[what])
    assert play.said == []
    assert play.desk.phase is UNEXPECTED[state]


# ---- what a client may send

Occasion = Callable[[ClientPlay], None]


def by_itself(name: str) -> Occasion:
    return lambda play: play.bring_about(name)


def answering(message: str) -> Occasion:
    """Return an occasion: the server sends this message."""

    def hear(play: ClientPlay) -> None:
        play.present(CONCRETE[message])

    return hear


OCCASIONS: Mapping[tuple[str, str], Occasion] = {
    # "The client SHALL start a new connection by sending the OHAI command to the server."
    ("START", "C:Ohai"): by_itself("Ohai"),
    # "The client MAY subscribe to any number of virtual paths by sending ICANHAZ commands to the server."
    ("USE", "C:Icanhaz"): by_itself("Icanhaz"),
    # "The client MAY sent NOM commands at any point after it has received an OHAI-OK from the server."
    ("USE", "C:Nom"): answering("OhaiOk"),
    # "The server or client MAY sent heartbeat commands at any point after the server has sent OHAI-OK"
    ("USE", "C:Hugz"): by_itself("Hugz"),
    ("S_HUGZ", "C:HugzOk"): answering("Hugz"),
    # "The client MAY end a connection by sending the KTHXBAI command to the server."
    ("USE", "C:Kthxbai"): by_itself("Kthxbai"),
}
NEVER_SENT = {("USE", "C:Ohai"): "libfilemq answers a second OHAI; our client has no reason to send one"}

CLIENTS_ROWS = [row for protocol in PROTOCOLS for row in rows(protocol) if row.label.startswith("C:")]


@pytest.mark.parametrize("row", [row for row in CLIENTS_ROWS if row.cell not in NEVER_SENT], ids=str)
def test_what_a_client_may_send_is_sent_where_it_belongs(row: Row) -> None:
    play = play_to(row)
    OCCASIONS[row.cell](play)
    assert play.said == [row.label[2:]]
    assert play.faults == []


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_ohai_is_said_once_on_a_connection(protocol: Protocol) -> None:
    """The rows that our client leaves out: through everything that keeps a connection, OHAI is not said again."""
    play = ClientPlay(protocol)
    play.walk(["C:Ohai", "S:OhaiOk", "C:Icanhaz", "S:IcanhazOk", "S:Cheezburger", "C:Hugz", "S:HugzOk"])
    for message in ("OhaiOk", "IcanhazOk", "HugzOk", "Cheezburger"):
        play.present(CONCRETE[message])
    play.bring_about("Kthxbai")
    assert play.history.count("Ohai") == play.connections == 1


def test_the_hand_written_entries_are_of_rows_that_exist() -> None:
    """An entry whose row is gone from both tables is to go too."""
    assert {row.cell for row in SERVERS_ROWS} == {*REACTIONS, *NEVER}
    assert {row.cell for row in CLIENTS_ROWS} == {*OCCASIONS, *NEVER_SENT}
