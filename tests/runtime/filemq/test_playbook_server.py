"""The server's engine at every row of the generated tables, of both dialects and in both readings.

The expected answers are written by hand from the text of FILEMQ v2 and, for the C implementation's dialect, from
measurements of it. The tables say only which rows there are. A row without an entry here fails.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import pytest

from specwire.generated.dialog import Reading
from specwire.generated.filemq import Nom
from specwire.runtime.kernel.effects import HostEffect
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
from tests.runtime.filemq.server_driver import ServerDriver, drops, entry, sent

SIGNED = b"\xaa\xa3"


class ServerPlay(Play):
    """A server with one client."""

    own = "S"

    def __init__(
        self,
        protocol: Protocol,
        reading: Reading = "concurrent",
        *,
        max_clients: int = 1,
        refusal: str | None = None,
    ) -> None:
        super().__init__(protocol, reading)
        self.closed = False
        self.driver = ServerDriver(
            timers=TIMES,
            dialect=self.dialect,
            max_clients=max_clients,
            authorise=lambda user, path: refusal,
        )

    def receive(self, frames: Sequence[bytes]) -> None:
        """Present a message; `closed` says whether it ended the peering."""
        self.closed = False
        self.perform(self.driver.receive(frames))

    def perform(self, effects: list[HostEffect]) -> None:
        """Play effects out, and note what is sent."""
        played = self.driver.play_out(effects)
        for command in sent(played):
            self.note_sent(command)
        self.closed |= bool(drops(played))

    def bring_about(self, name: str) -> None:
        """Make the server send a message of this class."""
        match name:
            case "Hugz":
                self.perform(self.driver.tick(self.driver.now + TIMES["heartbeat"]))
            case "Kthxbai":
                self.perform(self.driver.stop())
            case "Cheezburger":
                self.present(CONCRETE["Icanhaz"])
                self.present(CONCRETE["Nom"])
                self.perform(self.driver.publish(entry("/a")))


def play_to(row: Row, **terms: int | str) -> ServerPlay:
    """Return an engine in the row's state, short of a last message of the client that brings it there."""
    play = ServerPlay(row.protocol, row.reading, **terms)  # type: ignore[arg-type]
    path = path_to(row)
    play.walk(path[:-1] if path and row.label.startswith("S:") and path[-1].startswith("C:") else path)
    play.said.clear()
    return play


# ---- what a client may send


class Answer(NamedTuple):
    """What the server says, and whether it still knows the client then."""

    says: tuple[str, ...] = ()
    peered: bool = True


ANSWERS: Mapping[tuple[str, str], Answer] = {
    # "If the server accepts the OHAI command it SHALL reply with an OHAI-OK command."
    ("START", "C:Ohai"): Answer(("OhaiOk",)),
    # libfilemq: "OHAI again gets OHAI-OK"
    ("USE", "C:Ohai"): Answer(("OhaiOk",)),
    # "When a server accepts a subscription it MUST reply with an ICANHAZ-OK command."
    ("USE", "C:Icanhaz"): Answer(("IcanhazOk",)),
    # "The server SHALL not respond directly to NOM commands."
    ("USE", "C:Nom"): Answer(),
    # "A peer SHALL respond to a HUGZ command with a HUGZ-OK command."
    ("USE", "C:Hugz"): Answer(("HugzOk",)),
    # "The server SHALL not respond to this command."
    ("USE", "C:Kthxbai"): Answer(peered=False),
    # the answer that a HUGZ of the server asked for
    ("S_HUGZ", "C:HugzOk"): Answer(),
}

CLIENTS_ROWS = [row for protocol in PROTOCOLS for row in rows(protocol) if row.label.startswith("C:")]


@pytest.mark.parametrize("row", CLIENTS_ROWS, ids=str)
def test_what_a_client_may_send_is_answered_as_specified(row: Row) -> None:
    play = play_to(row)
    answer = ANSWERS[row.cell]
    assert play.present(CONCRETE[row.label[2:]]) is None
    assert tuple(play.said) == answer.says
    assert play.closed is not answer.peered
    assert play.driver.clients == answer.peered
    assert play.faults == []


# ---- what a client may not send

UNEXPECTED: Mapping[str, Answer] = {
    # "The server SHALL reply to an unexpected command with a RTFM command", and here nothing is opened by it.
    "START": Answer(("Rtfm",), peered=False),
    # The same; "the client SHALL respond to an RTFM command by closing", so the server is done with it too.
    "USE": Answer(("Rtfm",), peered=False),
    # A client that has gone is a stranger.
    "CLOSED": Answer(("Rtfm",), peered=False),
}
REOPENED = Answer(("OhaiOk",))
"""OHAI of a client that has gone: "The client SHALL start a new connection by sending the OHAI command"."""


@pytest.mark.parametrize("row", [r for p in PROTOCOLS for r in absent_rows(p, "C")], ids=str)
def test_what_a_client_may_not_send_is_answered_with_rtfm(row: Row) -> None:
    if row.state == "C_OHAI":
        # Between OHAI and its answer no client gets a word in: the engine answers within the same call.
        play = ServerPlay(row.protocol)
        play.present(CONCRETE["Ohai"])
        assert play.session.state == "USE"
        return
    play = play_to(row)
    answer = REOPENED if row.cell == ("CLOSED", "C:Ohai") else UNEXPECTED[row.state]
    assert play.present(CONCRETE[row.label[2:]]) is not None
    assert tuple(play.said) == answer.says
    assert play.driver.clients == answer.peered
    assert play.faults == [] or row.state == "CLOSED", "RTFM is the one thing to say, but the dialog is over"


MALFORMED: Mapping[str, tuple[list[bytes], dict[Protocol, tuple[str, ...]]]] = {
    # "The server and client SHALL silently discard any message received that does not start with these two octets."
    "without the signature": ([b"\xaa\xa4\x07" + bytes(8)], {"filemq": (), "libfilemq": ()}),
    "an empty frame": ([b""], {"filemq": (), "libfilemq": ()}),
    # "The server SHALL respond to an invalid command by sending RTFM."
    "an unknown number": ([SIGNED + b"\x63"], {"filemq": ("Rtfm",), "libfilemq": ("Rtfm",)}),
    # "The server SHALL respond to any malformed command by sending WAT." The C implementation has no WAT.
    "a short NOM": ([SIGNED + b"\x07\x00"], {"filemq": ("Wat",), "libfilemq": ("Rtfm",)}),
    "a frame too many": ([SIGNED + b"\x09", b"more"], {"filemq": ("Wat",), "libfilemq": ("Rtfm",)}),
    "the signature alone": ([SIGNED], {"filemq": ("Wat",), "libfilemq": ("Rtfm",)}),
}


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("state", ["START", "USE", "CLOSED"])
@pytest.mark.parametrize("what", MALFORMED)
def test_what_is_no_message_is_answered_the_same_in_every_state(
    protocol: Protocol, state: str, what: str
) -> None:
    frames, answers = MALFORMED[what]
    play = play_to(Row(protocol, "concurrent", state, "C:"))
    before = play.driver.clients
    play.malformed(frames)
    assert tuple(play.said) == answers[protocol]
    assert play.driver.clients == (before if not play.said else 0)


# ---- what a server may send


def hear(message: str) -> Callable[[ServerPlay], None]:
    """Return a provocation: the client sends this message."""

    def provoke(play: ServerPlay) -> None:
        play.present(CONCRETE[message])

    return provoke


def hear_octets(message: str, faulty: Callable[[bytes], bytes]) -> Callable[[ServerPlay], None]:
    """Return a provocation: the client sends a faulty form of this message."""

    def provoke(play: ServerPlay) -> None:
        [frame] = play.dialect.encode(CONCRETE[message])
        assert play.session.observe("C", CONCRETE[message]) is None
        play.said.clear()
        play.receive([faulty(frame)])

    return provoke


def unpeered(play: ServerPlay) -> None:
    """Send what no client may at this point."""
    play.present(CONCRETE["IcanhazOk"])


def overflow(play: ServerPlay) -> None:
    """Grant more than 64 bits hold."""
    play.present(Nom(credit=2**64 - 1))
    play.present(Nom(credit=1))


class Provocation(NamedTuple):
    """What makes a server send the message of a row, and whether it still knows the client then."""

    provoke: Callable[[ServerPlay], None]
    peered: bool = True
    terms: Mapping[str, int | str] = {}


def by_itself(name: str) -> Callable[[ServerPlay], None]:
    """Return a provocation: there is an occasion on the server's own side."""
    return lambda play: play.bring_about(name)


PROVOCATIONS: Mapping[tuple[str, str], Provocation] = {
    ("C_OHAI", "S:OhaiOk"): Provocation(hear("Ohai")),
    # "If the server does not accept the OHAI command for other reasons, it SHALL reply with a SRSLY command."
    ("C_OHAI", "S:Srsly"): Provocation(hear("Ohai"), peered=False, terms={"max_clients": 0}),
    # "If the server does not support the request protocol version it SHALL reply with a RTFM command."
    ("C_OHAI", "S:Rtfm"): Provocation(hear_octets("Ohai", lambda f: f[:-1] + b"\x03"), peered=False),
    ("C_OHAI", "S:Wat"): Provocation(hear_octets("Ohai", lambda f: f + b"more"), peered=False),
    ("C_OHAI_2", "S:OhaiOk"): Provocation(hear("Ohai")),
    ("C_ICANHAZ", "S:IcanhazOk"): Provocation(hear("Icanhaz")),
    # "If the server refuses a subscription it SHALL reply with a SRSLY command, and discard any further commands
    # from this client": so it still knows whom it does not hear.
    ("C_ICANHAZ", "S:Srsly"): Provocation(hear("Icanhaz"), terms={"refusal": "is private"}),
    # An unexpected command between the two; the C implementation's dialect has it for a malformed ICANHAZ too.
    ("C_ICANHAZ", "S:Rtfm"): Provocation(hear_octets("Icanhaz", lambda f: f[:2] + b"\x63"), peered=False),
    ("C_ICANHAZ", "S:Wat"): Provocation(hear_octets("Icanhaz", lambda f: f[:-1]), peered=False),
    ("C_HUGZ", "S:HugzOk"): Provocation(hear("Hugz")),
    ("USE", "S:Cheezburger"): Provocation(by_itself("Cheezburger")),
    ("USE", "S:Hugz"): Provocation(by_itself("Hugz")),
    ("USE", "S:Kthxbai"): Provocation(by_itself("Kthxbai"), peered=False),
    # "The server SHALL respond to any failed attempt to access a resource on the server with a SRSLY command."
    ("USE", "S:Srsly"): Provocation(overflow),
    ("USE", "S:Rtfm"): Provocation(unpeered, peered=False),
    ("USE", "S:Wat"): Provocation(lambda play: play.malformed([SIGNED + b"\x07"]), peered=False),
}

SERVERS_ROWS = [row for protocol in PROTOCOLS for row in rows(protocol) if row.label.startswith("S:")]


@pytest.mark.parametrize("row", SERVERS_ROWS, ids=str)
def test_what_a_server_may_send_is_sent_where_it_belongs(row: Row) -> None:
    """Every message of the server has an occasion at its row, and is in turn there."""
    provocation = PROVOCATIONS[row.cell]
    play = play_to(row, **provocation.terms)
    provocation.provoke(play)
    assert set(play.said) == {row.label[2:]}
    assert play.faults == []
    assert play.driver.clients == provocation.peered


def test_the_hand_written_entries_are_of_rows_that_exist() -> None:
    """An entry whose row is gone from both tables is to go too."""
    assert {row.cell for row in CLIENTS_ROWS} == set(ANSWERS)
    assert {row.cell for row in SERVERS_ROWS} == set(PROVOCATIONS)


def test_a_refused_client_is_not_heard_any_more() -> None:
    """After SRSLY no command is answered, but OHAI, until the client is forgotten for its silence."""
    play = ServerPlay("filemq", refusal="is private")
    play.walk(["C:Ohai", "S:OhaiOk"])
    play.present(CONCRETE["Icanhaz"])
    assert play.said == ["Srsly"]
    for name, command in CONCRETE.items():
        if name != "Ohai":
            play.present(command)
            assert play.said == [], command
    play.perform(play.driver.tick(TIMES["expiry"]))
    assert play.driver.clients == 0
