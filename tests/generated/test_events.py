"""What a program asks a machine before it acts: the table of valid events, and whether it may send."""

from __future__ import annotations

import pytest

from specwire.generated.dialog import Dialog, Phase
from specwire.generated.events import Events
from specwire.generated.session import DialogSession
from tests.generated.machines import machine, message, watch

OPENED = "C:OHAI S:OHAI-OK "
TRACES = [
    OPENED + "C:ICANHAZ S:ICANHAZ-OK C:NOM S:CHEEZBURGER C:KTHXBAI",
    OPENED + "C:HUGZ S:HUGZ-OK S:HUGZ C:HUGZ-OK S:KTHXBAI",
    OPENED + "C:ICANHAZ S:SRSLY",
]


def test_table_of_valid_events_is_what_a_side_may_do_in_each_state() -> None:
    """FILEMQ v2 as written, seen by the client: nothing to send while it waits for an answer."""
    table = machine("filemq").valid_events("C", "strict")
    assert list(table) == ["START", "C_OHAI", "USE", "C_ICANHAZ", "C_HUGZ", "S_HUGZ", "CLOSED"]
    assert table["START"] == Events(send=("Ohai",))
    assert table["C_OHAI"] == Events(receive=("OhaiOk", "Srsly", "Rtfm", "Wat"))
    assert table["S_HUGZ"] == Events(send=("HugzOk",))
    assert table["CLOSED"] == Events()


def test_table_tells_replies_apart_in_the_concurrent_reading() -> None:
    """HUGZ-OK is in order while a HUGZ waits for it; the phase alone does not say whether one does."""
    use = machine("filemq").valid_events("S")["USE"]
    assert use.send == ("Kthxbai", "Srsly", "Rtfm", "Wat", "Cheezburger", "Hugz")
    assert use.receive == ("Kthxbai", "Icanhaz", "Nom", "Hugz")
    assert (use.reply, use.awaited) == (("IcanhazOk", "HugzOk"), ("HugzOk",))
    assert machine("filemq").valid_events("S")["CLOSED"] == Events()


@pytest.mark.parametrize("role", ["C", "S"])
@pytest.mark.parametrize("reading", ["strict", "concurrent"])
def test_table_and_session_agree(role: str, reading: str) -> None:
    """Whatever a session lets a side send is in the row of its state, and what is always in order is let through."""
    table = machine("filemq").valid_events(role, reading)
    for trace in TRACES:
        session = machine("filemq").Session(role, reading)
        for word in trace.split():
            row = table[session.state]
            assert set(row.send) <= set(session.may_send()) <= {*row.send, *row.reply}
            watch(session, word)


def test_table_of_a_role_that_does_not_speak() -> None:
    with pytest.raises(ValueError, match="'client' has the roles C, B, not 'W'"):
        machine("norfab").valid_events("W")
    with pytest.raises(ValueError, match="'strict' or 'concurrent'"):
        machine("norfab").valid_events("B", "loose")
    with pytest.raises(KeyError):
        machine("norfab").valid_events("B", dialog="manager")
    use = machine("norfab").valid_events("W", dialog="worker")["USE"]
    assert (use.reply, use.awaited) == (("Response",), ("Open",))


def test_sending_out_of_turn_is_our_own_fault_and_changes_nothing() -> None:
    """A request that a state does not allow is answered at once, so nobody waits for what never comes."""
    session = machine("filemq").Session("S")
    violation = session.send(message("OHAI-OK"))
    assert violation is not None and violation.role == session.role == "S"
    assert session.state == "START"
    assert session.receive(message("OHAI")) is None
    assert session.send(message("OHAI-OK")) is None
    violation = session.receive(message("OHAI"))
    assert violation is not None and violation.role == "C"


def test_receiving_needs_one_other_side() -> None:
    alone = machine("norfab").Session("B", dialog="worker")
    assert alone.receive(message("OPEN")) is None
    dialog = Dialog("d", "d", ("A", "B", "C"), {"START": {}}, {"START": Phase({}, {})}, {})
    with pytest.raises(ValueError, match="several roles may send to 'A'"):
        DialogSession(dialog, "A", "strict").receive(message("OPEN"))


def test_reply_that_waits_goes_before_a_message_of_the_lifecycle() -> None:
    """BYE answers ASK, and BYE ends the dialog: the one that is waited for comes first."""
    dialog = Dialog(
        name="d",
        rule="d",
        roles=("C", "S"),
        strict={"START": {}},
        phases={
            "USE": Phase({"S:Bye": "CLOSED"}, {"C:Ask": ("USE", "C_ASK")}),
            "CLOSED": Phase({}, {}),
        },
        replies={"S:Bye": (("C_ASK", None),)},
        key=("tag",),
        keyless={"tag": 0},
    )
    session = DialogSession(dialog, "C", "concurrent")
    assert watch(session, "C:ASK S:BYE", tag=1) == []
    assert session.state == "USE"
    assert watch(session, "S:BYE", tag=0) == [], "without a key it is no reply to anything that waits"
    assert session.closed
