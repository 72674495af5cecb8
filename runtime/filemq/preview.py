"""Dry run of a subscriber: the files that a server lists, compared with an inbox.

`list_files` connects, asks for each path with the option `LIST` (see `resync`), and says goodbye.
It subscribes to nothing, grants no credit and gets no content. A server that does not know the
option answers ICANHAZ-OK and sends nothing. To notice that, the client sends a HUGZ after the first
ICANHAZ-OK: a server that lists files sends the first command of the listing before it answers. The
client also ends when a server makes no progress for the time `expiry`.

`preview` changes nothing: the inbox is neither created nor locked, so a subscriber may use it
meanwhile. A file whose state the journal does not have is read each time. A listing does not say
which places the server cannot read now. A file there that the server does not list is reported as
deleted, although the server would not delete it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from math import inf
from pathlib import Path
from typing import NamedTuple

import msgspec

from specwire.generated.filemq import (
    Cheezburger,
    Hugz,
    HugzOk,
    Icanhaz,
    IcanhazOk,
    Kthxbai,
    Ohai,
)
from specwire.generated.session import DialogSession
from specwire.runtime.containment import open_folder, open_root
from specwire.runtime.filemq.access import ClientSecurity
from specwire.runtime.filemq.codec import FILEMQ, Command, ErrorCommand, FilemqCodec
from specwire.runtime.filemq.connection import Paths
from specwire.runtime.filemq.deletion import DeletionLimit
from specwire.runtime.filemq.events import Counters
from specwire.runtime.filemq.inbox import explaining
from specwire.runtime.filemq.incoming import read_headers
from specwire.runtime.filemq.journal import Inventory, Journal
from specwire.runtime.filemq.names import RESERVED, IgnoreRule, covers, is_folder
from specwire.runtime.filemq.policy import InboxRules
from specwire.runtime.filemq.resync import ATTRIBUTES, INSIDE, LEFT, LIST
from specwire.runtime.kernel.effects import (
    TIMED_OUT,
    Connect,
    Now,
    Return,
    Send,
    Steps,
    Stop,
    Story,
    Wait,
    Wake,
)
from specwire.runtime.kernel.engine import StoryEngine
from specwire.runtime.kernel.events import (
    Called,
    Event,
    MessageMalformed,
    MessageReceived,
    PeerDisconnected,
    PeerId,
    SendFailed,
    Stopping,
)
from specwire.runtime.kernel.host import Host
from specwire.runtime.kernel.service import ConnectionSettings, HostSettings
from specwire.runtime.transport.dealer import MAX_FRAME_OCTETS
from specwire.runtime.transport.security import NULL


class Preview(msgspec.Struct, frozen=True):
    """Files that a subscriber would receive and delete, in order of name.

    Attributes:
        missing: files to receive that the inbox does not have.
        changed: files to receive that the inbox has in another version.
        refused: listed names that it does not accept, with the reason.
        deleted: names of files and empty folders to delete.
        withholds: the subscriber would keep these: too many would be deleted at once.
    """

    missing: list[ListedFile] = []
    changed: list[ListedFile] = []
    refused: list[tuple[str, str]] = []
    deleted: list[str] = []
    withholds: bool = False


class HeldFiles(msgspec.Struct, frozen=True):
    """Files that an inbox holds.

    Attributes:
        digests: SHA-1 by name, under the paths.
        deletable: names of those that the server may delete, if it does not publish them.
        withheld: names of all files of which a deletion is withheld.
        total: number of files in the inbox that its journal would have.
    """

    digests: dict[str, str] = {}
    deletable: list[str] = []
    withheld: frozenset[str] = frozenset()
    total: int = 0


def preview(
    files: Sequence[ListedFile], inbox: Path, paths: Paths, *, rules: InboxRules, origin: str, folders: bool
) -> Preview:
    """Compare the files that a server lists with an inbox.

    Args:
        origin: name of the server in the inbox.
        folders: the subscriber creates and deletes empty folders.

    Raises:
        InboxError: the inbox cannot be used.
        ValueError: an ignore pattern of `rules` is not valid.
    """
    ignore = IgnoreRule(rules.ignore)
    held = read_inbox(inbox, paths, origin)
    found = Preview()
    for file in files:
        digest = held.digests.get(file.name)
        if fault := paths.fault_in_file(file.name):
            found.refused.append((file.name, fault))
        elif not ignore.ignores(file.name) and digest != file.sha1:
            (found.missing if digest is None else found.changed).append(file)
    published = {file.name for file in files}
    deleted = [
        name
        for name in held.deletable
        if name not in published and not ignore.ignores(name) and (folders or not is_folder(name))
    ]
    withholds = would_withhold({*deleted}, held, paths, rules)
    return msgspec.structs.replace(found, deleted=deleted, withholds=withholds)


def would_withhold(deleted: set[str], held: HeldFiles, paths: Paths, rules: InboxRules) -> bool:
    """Return whether the limit on deletions would withhold some of these.

    As long as a deletion is withheld, further ones are. The server decides again about those under
    the paths.
    """
    if not deleted or rules.accept_deletions:
        return False
    files = [name for name in deleted if not is_folder(name)]
    stays = any(name in deleted or not any(covers(path, name) for path in paths) for name in held.withheld)
    return stays or len(files) > DeletionLimit(rules).most(held.total)


def read_inbox(inbox: Path, paths: Paths, origin: str) -> HeldFiles:
    """Read which files an inbox holds under the paths; raises InboxError. There may be no inbox."""
    with ExitStack() as opened, explaining(inbox):
        try:
            root = open_root(inbox)
        except FileNotFoundError:
            return HeldFiles()
        opened.callback(os.close, root)
        own = None
        try:
            own = open_folder(root, [RESERVED])
            opened.callback(os.close, own)
        except FileNotFoundError:
            pass  # no subscriber has used it
        journal = Journal(own, origin, read_only=True)
        opened.callback(journal.close)
        inventory = Inventory(root, journal)
        digests = {name: sha1 for path in paths for name, sha1 in inventory.list_held(path).items()}
        return HeldFiles(
            digests,
            sorted(name for name in digests if journal.find_other_owner(name) is None),
            frozenset(journal.withheld),
            len(journal) + sum(journal.find(name) is None for name in digests),
        )


SERVER = PeerId("server")
ANSWER = "answer"
UNKNOWN = "it does not list its files: it is no specwire server, or an older version"


class ListingError(Exception):
    """A server has not listed its files; `str()` names the server and the reason."""


class ListedFile(NamedTuple):
    """A published file, or empty folder. The digest is in upper-case hexadecimal."""

    name: str
    size: int
    sha1: str


class ListFiles(msgspec.Struct, frozen=True):
    """Call: list the files under `paths`. Returns a list of `ListedFile`, or raises ListingError."""

    endpoint: str
    paths: tuple[str, ...]
    options: tuple[tuple[str, str], ...] = (LIST,)


@dataclass(eq=False)
class ListingState:
    """State of the conversation with one server.

    Attributes:
        timers: seconds by name (``heartbeat``, ``expiry``).
        files: listed so far, by name.
        lists: the server has begun a listing.
        hugz_at: time of the next HUGZ; infinite until the one before is answered.
        due: time at which the server must have made progress.
    """

    timers: Mapping[str, float]
    dialog: DialogSession = field(default_factory=lambda: FILEMQ.open_dialog("C"))
    files: dict[str, ListedFile] = field(default_factory=dict)
    lists: bool = False
    hugz_at: float = inf
    due: float = inf


async def list_files(
    endpoint: str,
    paths: Paths,
    *,
    security: ClientSecurity = NULL,
    folders: bool = False,
    marks: str = "",
    timers: Mapping[str, float] | None = None,
) -> list[ListedFile]:
    """Return the files that a server publishes under the paths, in order of name.

    Args:
        folders: list empty folders, too.
        marks: marks of the folders that contain the inbox, see `INSIDE`.
        timers: seconds by name (``heartbeat``, ``expiry``); default: those of the protocol.

    Raises:
        ListingError: the server cannot be reached, refuses, or does not know listings.
        TransportError: the credentials are invalid.
    """
    options = (LIST, *([ATTRIBUTES] if folders else []), *([(INSIDE, marks)] if marks else []))
    state = ListingState({**FILEMQ.timers, **(timers or {})})
    host = Host(
        StoryEngine(partial(react, state)),
        FilemqCodec(FILEMQ, Counters()),
        HostSettings(connections=ConnectionSettings(security=security, frame_octets=MAX_FRAME_OCTETS)),
        on_event=lambda event: None,
    )
    async with host:
        files: list[ListedFile] = await host.call(ListFiles(endpoint, tuple(paths), options))
    return files


def react(state: ListingState, event: Event) -> Story:
    """Return the story of an event."""
    match event:
        case Called(call=call, request=ListFiles() as request):
            try:
                yield from converse(state, request)
            except ListingError as error:
                reason = f"the files of {request.endpoint} cannot be listed: {error}"
                yield Return(call, error=ListingError(reason))
            else:
                yield Return(call, sorted(state.files.values()))
        case MessageReceived(message=message):
            yield Wake(ANSWER, message)
        case MessageMalformed(error=error):
            yield Wake(ANSWER, ListingError(str(error)))
        case PeerDisconnected(reason=reason) | SendFailed(reason=reason):
            yield Wake(ANSWER, ListingError(reason))
        case Stopping(reason=reason):
            yield Stop(reason)


def converse(state: ListingState, request: ListFiles) -> Story:
    """Connect, list the files under each path, and say goodbye; raises ListingError."""
    yield Connect(SERVER, request.endpoint)
    state.due = (yield Now()) + state.timers["expiry"]
    yield from send(state, Ohai())
    yield from receive(state)
    for path in request.paths:
        yield from send(state, Icanhaz(path=path, options=request.options, cache=()))
        yield from collect(state)
    yield from send(state, Kthxbai())


def collect(state: ListingState) -> Story:
    """Receive the listing of one path; raises ListingError."""
    while True:
        match (yield from receive(state)):
            case IcanhazOk() if not state.lists:
                yield from send(state, Hugz())
            case HugzOk() if not state.lists:
                raise ListingError(UNKNOWN)
            case Cheezburger(filename=name, headers=headers):
                left = dict(headers).get(LEFT)
                state.lists = state.lists or left is not None
                announced = read_headers(headers)
                if left is not None and announced.size is not None and announced.sha1 is not None:
                    state.files[name] = ListedFile(name, announced.size, announced.sha1)
                if left == "0":
                    return


def send(state: ListingState, command: Command) -> Story:
    """Send a command."""
    violation = state.dialog.send(command)
    assert violation is None, violation
    yield Send(SERVER, command)


def receive(state: ListingState) -> Steps[Command]:
    """Return the next command of the server, and show life until it comes; raises ListingError."""
    while True:
        answer = yield Wait(ANSWER, min(state.due, state.hugz_at))
        now: float = yield Now()
        if answer is not TIMED_OUT:
            match command := check(state, answer):
                case Hugz():
                    yield from send(state, HugzOk())
                case HugzOk():
                    state.hugz_at = now + state.timers["heartbeat"]
                    return command
                case _:
                    state.due = now + state.timers["expiry"]
                    return command
        elif now >= state.due:
            raise ListingError(f"no answer for {state.timers['expiry']:g} s")
        else:
            state.hugz_at = inf
            yield from send(state, Hugz())


def check(state: ListingState, answer: Command | ListingError) -> Command:
    """Return a command; raise ListingError for a failure, an error, a goodbye, or a command out of turn."""
    if isinstance(answer, ListingError):
        raise answer
    violation = state.dialog.receive(answer)
    if isinstance(answer, ErrorCommand):
        raise ListingError(answer.reason)
    if violation is not None:
        raise ListingError(str(violation))
    if isinstance(answer, Kthxbai):
        raise ListingError("the server said KTHXBAI")
    return answer
