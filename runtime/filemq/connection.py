"""One connection of a client to its server: its state and its rules, and the options of a client.

A path is subscribed to with one ICANHAZ. With RESYNC there may be several: for more files than fit
in one cache, and before them the request for the rest of an interrupted file. The commands of one
path do not wait for each other, up to a limit of the dialect. The next path waits for the last
ICANHAZ-OK of the path before it, so an error can be attributed to a path.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from math import inf

import msgspec

from specwire.generated.filemq import Hugz, Icanhaz, Nom
from specwire.generated.session import DialogSession
from specwire.runtime.filemq.codec import CacheRules, Command, Dialect, Habits, OutOfTurnError
from specwire.runtime.filemq.diskwork import DiscardFile, DiskQueue, Held, ListHeld
from specwire.runtime.filemq.incoming import Intake, Resuming
from specwire.runtime.filemq.names import (
    covers,
    fault_in_entry,
    fault_in_name,
    fault_in_path,
    normalise_path,
    relative_name,
)
from specwire.runtime.filemq.resync import ATTRIBUTES, INSIDE, PRUNE, RENAMES, RESUME_FROM_OCTETS, RESYNC
from specwire.runtime.kernel.effects import HostEffect, PauseReceiving, Send
from specwire.runtime.kernel.events import PeerId

WINDOW_OCTETS = 12 << 20
MAX_BACKLOG = 2000
"""With so many orders waiting for the disk, nothing is received."""

Effects = list[HostEffect]


class ClientOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of a client.

    Attributes:
        endpoint: of the server.
        paths: virtual paths to subscribe to.
        resync: at each connection, ask for everything that the inbox lacks. Without it only files
            that change from now on arrive.
        window_octets: content that may be on the way or wait for the disk.
        timers: seconds by name (``heartbeat``, ``expiry``, ``reconnect``); default: the dialect's.
        check_s: time between two comparisons of the inbox with what was received.
        marks: marks of the folders that contain the inbox, see `INSIDE`.
        resume_from_octets: size from which an interrupted file is kept.
        attributes: ask for modes and modification times of files, and for empty folders.
        renames: the inbox keeps deleted files, so that renamed files need not be sent.
    """

    endpoint: str
    paths: Sequence[str]
    resync: bool = True
    window_octets: int = WINDOW_OCTETS
    timers: Mapping[str, float] = {}
    check_s: float = inf
    marks: str = ""
    resume_from_octets: int = RESUME_FROM_OCTETS
    attributes: bool = False
    renames: bool = False


class Subscribe(msgspec.Struct, frozen=True):
    """Notice: subscribe to another path, too, as `Paths.check` returns it."""

    path: str


class ConfirmDeletions(msgspec.Struct, frozen=True):
    """Notice: perform the withheld deletions, and the next ones, however many there are."""


class Paths(list[str]):
    """Normalised virtual paths, each once, in the order in which they were added.

    Args:
        folders: accept names of empty folders from the server.

    Raises:
        ValueError: as `check` does.
    """

    def __init__(self, paths: Iterable[str], habits: Habits, *, folders: bool = False) -> None:
        super().__init__()
        self._fault_in_name = fault_in_entry if folders else fault_in_name
        self._longest_octets, self._server_filters = habits.longest_name_octets, habits.server_filters
        for path in paths:
            self.add(self.check(path))

    def check(self, path: str) -> str:
        """Return a path in its normal form; raises ValueError if nobody can subscribe to it."""
        normal = normalise_path(path)
        fault = fault_in_path(normal, self._longest_octets)
        if fault is not None:
            raise ValueError(f"{path!r} {fault}")
        return normal

    def add(self, path: str) -> None:
        """Add a path in its normal form."""
        if path not in self:
            self.append(path)

    def fault_in_file(self, name: str) -> str | None:
        """Return why a file is refused; None if it is accepted, "" if it is ignored."""
        fault = self._fault_in_name(name, self._longest_octets)
        if fault is None and not any(covers(path, name) for path in self):
            return "is under no path that was subscribed to" if self._server_filters else ""
        return fault


class Subscribing:
    """Paths still to be subscribed to on one connection, and the one that is asked for.

    Attributes:
        asking: the path that is asked for.
    """

    def __init__(self, *, resync: bool, habits: Habits) -> None:
        self.asking: str | None = None
        self._resync, self._habits = resync, habits
        self._paths: deque[str] = deque()
        self._commands: Iterator[Icanhaz]
        self._begin_path()

    @property
    def is_done(self) -> bool:
        """Whether all commands for the path that is asked for were accepted."""
        return self._sent > 0 and self._sent == self._accepted

    @property
    def is_resuming(self) -> bool:
        """Whether the next answer is the answer to the request for the rest of a file."""
        return self._sent > self._accepted == self._resume_at

    def drop_renames(self) -> None:
        """Ask for renamed files as for others from now on."""
        options = tuple(option for option in self._habits.options if option != RENAMES)
        self._habits = msgspec.structs.replace(self._habits, options=options)

    def add(self, path: str) -> None:
        """Queue a path, unless it waits already."""
        if path not in self._paths:
            self._paths.append(path)

    def begin(self) -> Icanhaz | str | None:
        """Begin the next path.

        Returns:
            the command to send; or the path of which the files must be listed for `ask`; or None if
            a path is being asked for, or none is left.
        """
        if self.asking is not None or not self._paths:
            return None
        self.asking = self._paths.popleft()
        if self._resync:
            return self.asking
        self._sent = 1
        return Icanhaz(path=self.asking, options=self._habits.options, cache=())

    def ask(self, path: str, digests: Mapping[str, str], rest: Sequence[Icanhaz]) -> list[Icanhaz]:
        """Return the first commands for `path`, under which the inbox holds these digests.

        Args:
            rest: commands that go first; the last one asks for the rest of a file.
        """
        if path != self.asking or self._sent:
            return []
        self._resume_at = len(rest) - 1
        self._commands = chain(rest, resync_commands(path, digests, self._habits))
        return self._next_commands()

    def confirm(self) -> list[Icanhaz]:
        """Note an ICANHAZ-OK; return the next commands for the same path."""
        if self._sent == self._accepted:
            return []
        self._accepted += 1
        return self._next_commands()

    def finish(self) -> str | None:
        """End the path that is asked for, and return it."""
        path, self.asking = self.asking, None
        self._begin_path()
        return path

    def _begin_path(self) -> None:
        self._commands = iter(())
        self._sent = self._accepted = 0
        self._resume_at = -1

    def _next_commands(self) -> list[Icanhaz]:
        room = self._habits.cache.in_flight - (self._sent - self._accepted)
        commands = list(islice(self._commands, room))
        self._sent += len(commands)
        return commands


def resync_commands(path: str, digests: Mapping[str, str], habits: Habits) -> Iterator[Icanhaz]:
    """Yield the commands that subscribe to `path` and ask for what differs from `digests`."""
    rules = habits.cache
    entries = [
        (cached, digest)
        for name, digest in digests.items()
        if len((cached := _cached_name(path, name, rules)).encode()) <= rules.name_octets
    ]
    parts = [entries[i : i + rules.entries] for i in range(0, len(entries), rules.entries)] or [[]]
    for part in parts[:-1]:
        yield Icanhaz(path=path, options=habits.options, cache=tuple(part))
    yield Icanhaz(path=path, options=(RESYNC, PRUNE, *habits.options), cache=tuple(parts[-1]))


def _cached_name(path: str, name: str, rules: CacheRules) -> str:
    return name if rules.full_names else relative_name(path, name)


@dataclass(eq=False)
class ServerConnection:
    """One connection.

    Attributes:
        number: counts connections; orders for the disk carry it.
        window_octets: with more that is not on the disk, nothing is received.
        credit_octets: most octets that are granted or not written yet.
        received_at, sent_at: time of the last command in each direction.
        is_silent: neither the server nor the network has given an answer yet.
        awaits_life: HUGZ was sent, and HUGZ-OK has not come.
        is_paused: nothing is received until the disk has caught up.
    """

    number: int
    peer: PeerId
    dialog: DialogSession
    paths: Paths
    resuming: Resuming
    intake: Intake
    subscribing: Subscribing
    window_octets: int
    credit_octets: int
    received_at: float
    sent_at: float
    is_silent: bool = True
    awaits_life: bool = False
    is_paused: bool = False

    def send(self, command: Command, now: float) -> Send:
        """Return the effect that sends a command; raises OutOfTurnError if it is not allowed."""
        if violation := self.dialog.send(command):
            raise OutOfTurnError(str(violation))
        self.sent_at = now
        return Send(self.peer, command)


def make_connection(
    number: int, settings: ClientOptions, dialect: Dialect, paths: Paths, now: float
) -> ServerConnection:
    """Return a connection that begins now."""
    options = [*dialect.habits.options]
    if settings.marks:
        options.append((INSIDE, settings.marks))
    if settings.attributes:
        options.append(ATTRIBUTES)
    if settings.renames and settings.resync:
        options.append(RENAMES)
    habits = msgspec.structs.replace(dialect.habits, options=tuple(options))
    resuming = Resuming(
        number,
        habits,
        is_possible=habits.resumes and settings.resync,
        from_octets=settings.resume_from_octets,
    )
    intake = Intake(
        number,
        counts_commands=habits.counts_commands,
        fault_in_file=paths.fault_in_file,
        resuming=resuming,
    )
    return ServerConnection(
        number=number,
        peer=PeerId(f"server-{number}"),
        dialog=dialect.open_dialog("C"),
        paths=paths,
        resuming=resuming,
        intake=intake,
        subscribing=Subscribing(resync=settings.resync, habits=habits),
        window_octets=settings.window_octets,
        credit_octets=habits.credit_octets or settings.window_octets,
        received_at=now,
        sent_at=now,
    )


# ---- subscriptions and credit


def subscribe(connection: ServerConnection, disk: DiskQueue, paths: Iterable[str], now: float) -> Effects:
    """Subscribe to paths, or compare their files again; later, if a path is being asked for."""
    for path in paths:
        connection.subscribing.add(path)
    return ask_next(connection, disk, now)


def ask_next(connection: ServerConnection, disk: DiskQueue, now: float) -> Effects:
    """Ask for the next path, if it is its turn: first for the files that the inbox holds."""
    match connection.subscribing.begin():
        case None:
            return []
        case str(path):
            disk.add(ListHeld(connection.number, path))
            return []
        case command:
            return [connection.send(command, now)]


def ask_for_missing(connection: ServerConnection, disk: DiskQueue, held: Held, now: float) -> Effects:
    """Ask for what the inbox lacks, now that it was listed."""
    rest = connection.resuming.ask(held.unfinished, connection.paths)
    if isinstance(rest, DiscardFile):
        disk.add(rest)
        rest = ()
    commands = connection.subscribing.ask(held.path, held.digests, rest)
    return [connection.send(command, now) for command in commands]


def grant(connection: ServerConnection, now: float) -> Effects:
    """Grant what was written or discarded (FILEMQ v2, "The NOM Command"), once it is a quarter of the credit.

    So the octets that the server may still send and those that are not on the disk never exceed it.
    """
    intake, most = connection.intake, connection.credit_octets
    credit = most - intake.outstanding_octets - intake.pending_octets
    if credit < max(1, most // 4):
        return []
    intake.outstanding_octets += credit
    return [connection.send(Nom(credit=credit), now)]


# ---- time


def hugz_at(connection: ServerConnection, heartbeat_s: float) -> float:
    """Return when HUGZ is due. A paused connection does not wait for the answer to the last one."""
    if connection.awaits_life and not connection.is_paused:
        return inf
    return connection.sent_at + heartbeat_s


def show_life(connection: ServerConnection, heartbeat_s: float, now: float) -> Effects:
    """Send HUGZ if it is due."""
    if now < hugz_at(connection, heartbeat_s):
        return []
    connection.awaits_life = True
    return [connection.send(Hugz(), now)]


def pause_or_resume(connection: ServerConnection, disk: DiskQueue, now: float) -> Effects:
    """Receive nothing while too much waits for the disk. That silence is not the server's."""
    pending_octets = connection.intake.pending_octets
    is_behind = len(disk.waiting) >= MAX_BACKLOG or pending_octets > connection.window_octets
    if is_behind is connection.is_paused:
        return []
    connection.is_paused, connection.received_at = is_behind, now
    return [PauseReceiving(connection.peer, is_behind)]
