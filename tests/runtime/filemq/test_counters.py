"""Counters: commands by name, content, resyncs, events, and the messages of each host."""

from __future__ import annotations

from typing import cast

import msgspec
import pytest

from specwire.generated import filemq
from specwire.generated.filemq import Cheezburger, Icanhaz, Ohai, Rtfm, Srsly, Wat
from specwire.runtime.filemq.events import (
    Counters,
    FileDeleted,
    FileReceived,
    FileResumed,
    FileSent,
    FileWithdrawn,
    PeerOpened,
    Progress,
)
from specwire.runtime.kernel.host import Host
from specwire.runtime.kernel.log import LogEvent, Refused
from specwire.runtime.kernel.status import HostCounters, HostStatus, ProcessClock
from tests.runtime.filemq.server_driver import PRUNE, RESYNC


def test_errors_are_counted_by_direction() -> None:
    """SRSLY, RTFM and WAT."""
    counters = Counters()
    counters.count_command(Srsly(reason="no"), counters.commands_out)
    for command in (Rtfm(reason=""), Wat(reason=""), Ohai()):
        counters.count_command(command, counters.commands_in)
    assert (counters.errors_sent(), counters.errors_received()) == (1, 2)


def test_resyncs_are_counted_on_both_sides() -> None:
    """Only the last part of a cache asks for it."""
    counters = Counters()
    part = Icanhaz(path="/", options=(), cache=())
    last = Icanhaz(path="/", options=(RESYNC, PRUNE), cache=())
    counters.count_command(part, counters.commands_in)
    counters.count_command(last, counters.commands_in)
    counters.count_command(last, counters.commands_out)
    assert counters.resyncs == 2


def test_content_is_counted_in_chunks() -> None:
    """An empty chunk ends a file, and is none."""
    counters = Counters()
    for offset, octets in ((0, b"345"), (3, b"")):
        chunk = Cheezburger(sequence=0, operation=1, filename="/a", offset=offset, headers=(), chunk=octets)
        counters.count_command(chunk, counters.commands_in)
    assert (counters.chunks, counters.content_octets) == (1, 3)
    assert counters.commands_in == {"CHEEZBURGER": 2}


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
    """Each by what has happened; progress is nothing new."""
    counters = Counters()
    counters.count_event(event)
    assert {name: n for name, n in msgspec.structs.asdict(counters).items() if n} == counts


class CountedHost:
    """A host that has received messages and sent others."""

    def __init__(self, messages_in: int, *, was_started: bool = True) -> None:
        self.was_started, self._messages_in = was_started, messages_in

    def status(self) -> HostStatus:
        """Return the status."""
        return HostStatus(
            process=ProcessClock().describe(),
            endpoints={},
            paused=False,
            connections=0,
            pending_effects=0,
            messages_in=self._messages_in,
            messages_out=2,
            octets_in=30,
            octets_out=40,
            counters=HostCounters(cut_off=5),
        )


def counted(host: CountedHost) -> Host:
    """Return it as a host."""
    return cast(Host, host)


def test_messages_are_those_of_all_hosts() -> None:
    """A server that was stopped and started counts on; the counts of a moment do not change."""
    counters = Counters()
    counters.count_command(Ohai(), counters.commands_in)
    assert counters.with_host(None) == Counters(commands_in={"OHAI": 1})
    assert counters.with_host(counted(CountedHost(1, was_started=False))).messages_in == 0
    counters.add_host(counted(CountedHost(10)))
    now = counters.with_host(counted(CountedHost(1)))
    counters.count_command(filemq.Hugz(), counters.commands_in)
    counters.count_event(FileDeleted("/a"))
    assert now == Counters(
        messages_in=11,
        messages_out=4,
        octets_in=60,
        octets_out=80,
        cut_off=10,
        commands_in={"OHAI": 1},
    )


def test_two_peers_share_no_counts() -> None:
    """The dictionaries are not those of the class."""
    counters, others = Counters(), Counters()
    counters.count_command(Ohai(), counters.commands_in)
    assert others.commands_in == {}
