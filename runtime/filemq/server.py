"""Engine of a FILEMQ server, without I/O.

It has a `Peering` for each client that began with OHAI. A client without one has no state: OHAI
begins a peering, and anything else is answered with RTFM.

The files are part of the state: `Noticed` brings lists of changes, and subscribed clients are sent
them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from specwire.generated.errors import DecodeError
from specwire.generated.filemq import Ohai, Rtfm, Srsly
from specwire.runtime.filemq.catalogue import (
    Catalogue,
    Change,
    Doubt,
    Entry,
    Gone,
    PublicationTotals,
    Put,
    Trust,
    Unfit,
)
from specwire.runtime.filemq.codec import FILEMQ, Command, Dialect
from specwire.runtime.filemq.events import FilePublished, FileWithdrawn
from specwire.runtime.filemq.peering import Authorise, Enclose, Peering, Terms
from specwire.runtime.filemq.status import LOOK_S, ProgressLooks, UnderWay
from specwire.runtime.kernel.effects import Fork, Log, Now, Send, Stop, Story, Wait, Wake
from specwire.runtime.kernel.events import (
    Event,
    MessageMalformed,
    MessageReceived,
    Noticed,
    PeerDisconnected,
    PeerId,
    Reloaded,
    RoomMade,
    SendFailed,
    Started,
    Stopping,
)
from specwire.runtime.kernel.log import Refused

CHUNK_OCTETS = 2 << 20
MAX_CLIENTS = 10_000
UNCHANGED = "what was known there stays as it was"


def allow_all(user: str, path: str) -> str | None:
    """Allow every subscription."""
    return None


class FilesChanged(msgspec.Struct, frozen=True):
    """Value of `Noticed`: changes in the publication at `path`."""

    path: str
    changes: Sequence[Change]


@dataclass(eq=False)
class ServerState:
    """State of a server.

    Attributes:
        dialect: the wire format.
        chunk_octets: the largest chunk of content.
        timers: seconds by name (``heartbeat``, ``expiry``); default: the dialect's.
        authorise: decides about each subscription.
        enclose: decides whether an inbox lies in what is published.
        max_clients: a further OHAI is refused with SRSLY.
        files: what is published.
        totals: number and size of the files, by the path of the publication.
        peerings: by client.
        progress: rates of the files that are being sent.
        is_listening: the first scan is over, and changes are logged.
    """

    dialect: Dialect = FILEMQ
    chunk_octets: int = CHUNK_OCTETS
    timers: Mapping[str, float] = field(default_factory=dict)
    authorise: Authorise = allow_all
    enclose: Enclose = allow_all
    max_clients: int = MAX_CLIENTS
    files: Catalogue = field(default_factory=Catalogue)
    totals: dict[str, PublicationTotals] = field(default_factory=dict)
    peerings: dict[PeerId, Peering] = field(default_factory=dict)
    progress: ProgressLooks = field(default_factory=ProgressLooks)
    is_listening: bool = False
    terms: Terms = field(init=False)

    def __post_init__(self) -> None:
        times = {**self.dialect.timers, **self.timers}
        self.terms = Terms(
            self.chunk_octets,
            times["heartbeat"],
            times["expiry"],
            self.authorise,
            self.dialect.habits,
            self.enclose,
        )

    def under_way(self) -> list[UnderWay]:
        """Return the file that is being sent to each client."""
        return [file for one in self.peerings.values() if (file := one.outflow.under_way) is not None]


def react(state: ServerState, event: Event) -> Story:
    """Return the story of an event."""
    match event:
        case MessageReceived() | MessageMalformed():
            yield from receive(state, event)
        case RoomMade(peer=peer, octets=octets):
            yield Wake(("room", peer), octets)
        case PeerDisconnected(peer=peer, reason=reason) | SendFailed(peer=peer, reason=reason):
            if (peering := state.peerings.get(peer)) is not None:
                yield from peering.drop(reason, discard=True)
        case Noticed(value=FilesChanged(path=path, changes=changes)):
            for change in changes:
                yield from change_files(state, path, change)
        case Reloaded():
            for peering in tuple(state.peerings.values()):
                yield from peering.review((yield Now()))
        case Started():
            state.is_listening = True
            yield Fork(report_progress(state))
        case Stopping(reason=reason):
            for peering in tuple(state.peerings.values()):
                yield from peering.stop((yield Now()))
            state.is_listening = False
            yield Stop(reason)


def receive(state: ServerState, event: MessageReceived | MessageMalformed) -> Story:
    """Handle a message."""
    peering = state.peerings.get(event.peer)
    if peering is not None and peering.user != event.user:
        # A client chooses its routing id, and may choose that of a client that has just left.
        yield from peering.drop("another client has its routing id now", discard=True)
        peering = None
    if isinstance(event, MessageMalformed):
        yield from answer_malformed(state, event, peering)
        return
    command: Command = event.message
    if peering is not None and peering.refused and isinstance(command, Ohai):
        # "The SRSLY Command": the client may connect again, perhaps with the same routing id.
        yield from peering.drop("begins again after SRSLY", discard=True)
        peering = None
    if peering is not None:
        yield from peering.handle(command, (yield Now()))
    elif not isinstance(command, Ohai):
        yield Send(event.peer, Rtfm(reason=f"{command.NAME} before OHAI"))
    elif len(state.peerings) >= state.max_clients:
        yield Send(event.peer, Srsly(reason=f"already {state.max_clients} clients"))
    else:
        yield from begin(state, event.peer, event.user, command)


def begin(state: ServerState, peer: PeerId, user: str, command: Ohai) -> Story:
    """Begin a peering."""
    now: float = yield Now()
    dialog = state.dialect.open_dialog("S")
    peering = Peering(peer, state.peerings, state.files, terms=state.terms, dialog=dialog, now=now, user=user)
    state.peerings[peer] = peering
    yield Fork(send_files(peering), owner=peer)
    yield Fork(peering.keep_alive(), owner=peer)
    yield from peering.handle(command, now)


def send_files(peering: Peering) -> Story:
    """Send files to a client; a fault of ours ends the peering, because nothing would be sent any more."""
    try:
        yield from peering.outflow.run()
    except Exception:
        yield from peering.drop("a fault of specwire", discard=True)
        raise


def answer_malformed(state: ServerState, event: MessageMalformed, peering: Peering | None) -> Story:
    """Answer malformed frames (FILEMQ v2, "Protocol Signature", "The WAT Command"): RTFM, WAT or nothing."""
    peer, error = event.peer, event.error
    name = error.message_name if isinstance(error, DecodeError) and error.message_name else "a message"
    yield Log(Refused(name, str(error), peer.routing_id.hex()))
    answer = state.dialect.answer("S", error) if isinstance(error, DecodeError) else None
    if answer is not None and peering is not None:
        yield from peering.answer_malformed(answer, (yield Now()))
    elif answer is not None:
        yield Send(peer, answer)


def change_files(state: ServerState, path: str, change: Change) -> Story:
    """Apply a change of the publication at `path`."""
    files = state.files
    match change:
        case Put(entry=entry):
            yield from publish(state, path, entry)
        case Gone(name=name) if (old := files.find(name)) is not None:
            state.totals.setdefault(path, PublicationTotals()).replace(old, None)
            files.remove(name)
            yield Log(FileWithdrawn(name))
            for peering in tuple(state.peerings.values()):
                yield from peering.withdraw(old)
        case Unfit(name=name, reason=reason):
            yield Log(Refused(name, reason))
        case Doubt(name=name, reason=reason):
            files.doubts[name] = reason
            if reason:
                yield Log(Refused(name, f"{reason}; {UNCHANGED}"))
        case Trust(name=name):
            files.doubts.pop(name, None)


def publish(state: ServerState, path: str, entry: Entry) -> Story:
    """List a file, and send it to the subscribed clients if its content is new."""
    old = state.files.find(entry.name)
    state.totals.setdefault(path, PublicationTotals()).replace(old, entry)
    if state.files.put(entry) and state.is_listening:
        yield Log(FilePublished(entry.name, entry.size, entry.sha1))
        for peering in tuple(state.peerings.values()):
            yield from peering.publish(entry)


def report_progress(state: ServerState) -> Story:
    """Log the progress of files that take long."""
    while True:
        now: float = yield Now()
        for event in state.progress.look(state.under_way(), now):
            yield Log(event)
        yield Wait("progress", now + LOOK_S)
