"""Counters: each command by its name, in both dialects, and each event for what it stands for."""

from __future__ import annotations

import pytest

from specwire.generated import filemq, libfilemq
from specwire.generated.errors import DecodeError
from specwire.runtime.filemq.counters import Counters
from specwire.runtime.filemq.counting import CountingDialect
from specwire.runtime.filemq.dialect import FILEMQ
from specwire.runtime.filemq.dialects import DIALECTS
from specwire.runtime.filemq.events import (
    FileDeleted,
    FileReceived,
    FileResumed,
    FileSent,
    FileWithdrawn,
    PeerOpened,
    Progress,
)
from specwire.runtime.filemq.libfilemq import LIBFILEMQ
from specwire.runtime.kernel.log import LogEvent, Refused


@pytest.mark.parametrize("protocol", DIALECTS)
def test_it_speaks_as_the_dialect_does(protocol: str) -> None:
    dialect, counting = DIALECTS[protocol], CountingDialect(DIALECTS[protocol], Counters())
    command = filemq.Icanhaz(path="/a", options=(("RESYNC", "1"),), cache=(("b", "AA"),))
    frames = counting.encode(command)
    assert frames == dialect.encode(command)
    assert list(counting.decode(frames)) == list(dialect.decode(frames))
    assert (counting.name, counting.edition, counting.timers, counting.habits) == (
        dialect.name,
        dialect.edition,
        dialect.timers,
        dialect.habits,
    )


def test_commands_are_counted_by_name_and_direction() -> None:
    counters = Counters()
    counting = CountingDialect(FILEMQ, counters)
    for frames in (filemq.Ohai().encode(), filemq.Nom(credit=1).encode(), filemq.Nom(credit=2).encode()):
        counting.decode(frames)
    counting.encode(filemq.Srsly(reason="no"))
    assert counters.commands_in == {"OHAI": 1, "NOM": 2}
    assert counters.commands_out == {"SRSLY": 1}
    assert (counters.errors_sent(), counters.errors_received()) == (1, 0)


def test_a_message_of_two_commands_counts_as_two() -> None:
    """The C server's last chunk ends its file in the same message."""
    counters = Counters()
    last = libfilemq.Cheezburger(
        sequence=0, operation=1, filename="/a", offset=0, eof=1, headers=(), chunk=b"content"
    )
    CountingDialect(LIBFILEMQ, counters).decode(last.encode())
    assert counters.commands_in == {"CHEEZBURGER": 2}


def test_what_is_no_command_counts_as_malformed() -> None:
    counters = Counters()
    counting = CountingDialect(FILEMQ, counters)
    with pytest.raises(DecodeError) as error:
        counting.decode([b"\xaa\xa3\x07"])
    assert counting.answer("S", error.value) == FILEMQ.answer("S", error.value)
    assert (counters.malformed, counters.commands_in) == (1, {})


def test_resyncs_are_counted_on_both_sides() -> None:
    counters = Counters()
    counting = CountingDialect(FILEMQ, counters)
    part = filemq.Icanhaz(path="/", options=(), cache=())
    last = filemq.Icanhaz(path="/", options=(("RESYNC", "1"), ("PRUNE", "1")), cache=())
    counting.decode(part.encode())
    counting.decode(last.encode())
    counting.encode(last)
    assert counters.resyncs == 2


@pytest.mark.parametrize(
    ("event", "counts"),
    [
        (FileReceived("/a", 1, "AA"), {"files": 1}),
        (FileSent("/a", 1, "01"), {"files": 1}),
        (FileDeleted("/a"), {"deletions": 1}),
        (FileWithdrawn("/a"), {"deletions": 1}),
        (Refused("/a", "is bad"), {"refusals": 1}),
        (PeerOpened("01"), {"peerings": 1}),
        (FileResumed("/a", 500), {"resumed": 1, "octets_saved": 500}),
        (Progress("/a", 1, 2, 1.0), {}),
    ],
)
def test_events_are_counted(event: LogEvent, counts: dict[str, int]) -> None:
    counters = Counters()
    counters.count_event(event)
    assert {name: n for name, n in counters.to_dict().items() if n} == counts


def test_a_snapshot_stands_still() -> None:
    counters = Counters()
    counters.count_command_in(filemq.Ohai())
    before = counters.snapshot()
    counters.count_command_in(filemq.Ohai())
    counters.count_in([b"12", b"345"])
    end = filemq.Cheezburger(sequence=1, operation=1, filename="/a", offset=3, headers=(), chunk=b"")
    counters.count_command_in(end.replace(offset=0, chunk=b"345"))
    counters.count_command_in(end)
    assert before == Counters(commands_in={"OHAI": 1})
    assert counters == Counters(
        messages_in=1,
        octets_in=5,
        chunks=1,
        content_octets=3,
        commands_in={"OHAI": 2, "CHEEZBURGER": 2},
    )


def test_two_peers_share_no_counts() -> None:
    counters, others = Counters(), Counters()
    counters.count_command_in(filemq.Ohai())
    assert others.commands_in == {}
