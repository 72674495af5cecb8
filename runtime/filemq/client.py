"""The client's engine: frames and outcomes in, actions out; no socket, file, thread or clock.

A connection goes through these phases (the dialog's own states are watched by the generated machine):

    OPENING     OHAI is sent; OHAI-OK makes it OPEN, RTFM means another version and is final
    OPEN        credit is granted, and each path subscribed to, one ICANHAZ at a time
    WAITING     the connection was lost or ended by the server; it is opened again after a while (`reconnecting`)
    ENDED       closed by request, or for good by the server

Every error of the server ends the connection. What follows (FILEMQ v2, "The SRSLY Command" and after): SRSLY is
final; WAT in answer to ICANHAZ gives up that path, any other WAT is final, because the same command must not be
repeated; RTFM after OHAI-OK opens a fresh connection once, and again only when that one was of use. Silence and
KTHXBAI lead to a fresh connection.

With RESYNC each connection begins with a comparison of digests, so nothing that happened meanwhile is lost, and
with the request for the rest of a file that was interrupted (`resuming`). An error in answer to that makes the
client give up what it has of the file, and nothing else. A file that could not be stored (a full disk, a digest that
does not fit) is asked for again in the same way.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from enum import Enum

import msgspec

from specwire.generated.errors import DecodeError
from specwire.generated.filemq import (
    Cheezburger,
    Hugz,
    HugzOk,
    IcanhazOk,
    Kthxbai,
    Nom,
    Ohai,
    OhaiOk,
    Rtfm,
    Srsly,
    Wat,
)
from specwire.generated.filemq.machine import ClientHandler, dispatch_to_client
from specwire.runtime.filemq.actions import (
    Checked,
    CheckInbox,
    ClientAction,
    Close,
    Connect,
    Deleted,
    DiscardFile,
    Failed,
    Held,
    ListHeld,
    Outcome,
    Report,
    Restored,
    Send,
    Stored,
    Wrote,
)
from specwire.runtime.filemq.dialect import FILEMQ, Command, Dialect, ErrorCommand, OutOfTurnError
from specwire.runtime.filemq.events import (
    FileDeleted,
    FileReceived,
    FileRestored,
    PeerClosed,
    PeerOpened,
    Subscribed,
)
from specwire.runtime.filemq.intake import GapError, Intake, OverrunError
from specwire.runtime.filemq.names import normalise_path
from specwire.runtime.filemq.paths import Paths
from specwire.runtime.filemq.progress import UnderWay
from specwire.runtime.filemq.reconnecting import Reconnecting
from specwire.runtime.filemq.resuming import Resuming
from specwire.runtime.filemq.resync import INSIDE
from specwire.runtime.filemq.subscribing import Subscribing
from specwire.runtime.kernel.log import Refused
from specwire.runtime.transport.backoff import Backoff

WINDOW_OCTETS = 12 << 20
ASKED_AGAIN = "it is asked for again"
LONGEST_REPAIR_DELAY_S = 60.0


class Phase(Enum):
    """Where a connection stands; see the module's text."""

    OPENING = "opening"
    OPEN = "open"
    WAITING = "waiting"
    ENDED = "ended"


class ClientEngine(ClientHandler[float, list[ClientAction]]):
    """One subscriber, over as many connections as it takes.

    `receive` and `obey` take whatever comes; the handler's methods take what the dialog allows, with the time.

    Args:
        paths: virtual paths to subscribe to.
        resync: ask for everything under the paths that the inbox does not hold, at each connection; without
            it only files that change from now on arrive.
        window_octets: content that may be under way or wait for the disk; where the dialect's servers want
            endless credit, it is the shell that keeps `pending_octets` within it.
        timers: seconds by name (``heartbeat``, ``expiry``, ``reconnect``); default: the dialect's.
        server: how reports name the server.
        check_s: how often the inbox is compared with what was received.
        marks: the folders that the inbox lies in, see `INSIDE`.

    Raises:
        ValueError: nobody can subscribe to one of the paths.
    """

    def __init__(
        self,
        paths: Sequence[str],
        *,
        resync: bool = True,
        window_octets: int = WINDOW_OCTETS,
        timers: Mapping[str, float] | None = None,
        dialect: Dialect = FILEMQ,
        server: str = "server",
        check_s: float = math.inf,
        marks: str = "",
    ) -> None:
        self.phase = Phase.WAITING
        self.connection = 0
        self._dialect, self._habits, self._server = dialect, dialect.habits, server
        if marks:
            self._habits = msgspec.structs.replace(
                self._habits, options=(*self._habits.options, (INSIDE, marks))
            )
        self._paths = Paths(paths, dialect.habits)
        times = {**dialect.timers, **(timers or {})}
        self._heartbeat_s, self._expiry_s = times["heartbeat"], times["expiry"]
        self._reconnecting = Reconnecting(first_s=times["reconnect"], calm_s=2 * self._expiry_s)
        self._repair = Backoff(first_s=times["reconnect"], longest_s=LONGEST_REPAIR_DELAY_S, calm_s=60.0)
        self._repair_at: float | None = None
        self._check_s, self._check_at = check_s, math.inf
        self._resync, self._window_octets = resync, window_octets
        self._begin_connection(0.0)

    def _begin_connection(self, now: float) -> None:
        self._dialog = self._dialect.open_dialog("C")
        self._resuming = Resuming(self.connection, self._habits, resync=self._resync)
        self._intake = Intake(
            self.connection,
            window_octets=self._window_octets,
            habits=self._habits,
            screen=self._paths.screen,
            resuming=self._resuming,
        )
        self._subscribing = Subscribing(resync=self._resync, habits=self._habits)
        self._heard = self._sent = now
        self._asked_for_life = False

    @property
    def pending_octets(self) -> int:
        """Content of this connection that was received and is not on the disk yet."""
        return self._intake.pending_octets

    @property
    def under_way(self) -> UnderWay | None:
        """The file that is coming in, None where there is none."""
        return self._intake.under_way

    @property
    def paths(self) -> tuple[str, ...]:
        """What is subscribed to, whether or not there is a connection."""
        return tuple(self._paths)

    # ---- requests

    def open(self, now: float) -> list[ClientAction]:
        """Open a connection."""
        self.connection += 1
        self._begin_connection(now)
        self.phase = Phase.OPENING
        return [Connect(self.connection), self._send(Ohai(), now)]

    def subscribe(self, path: str, now: float) -> list[ClientAction]:
        """Subscribe to a further path; raises ValueError where nobody can."""
        self._paths.add(path)
        if self.phase is not Phase.OPEN:
            return []
        self._subscribing.add(normalise_path(path))
        return self._ask_next(now)

    def close(self, now: float) -> list[ClientAction]:
        """Say KTHXBAI and end."""
        if self.phase is Phase.ENDED:
            return []
        peered = self.phase is Phase.OPEN  # before OHAI-OK there is nothing to say goodbye to
        farewell: list[ClientAction] = [self._send(Kthxbai(), now)] if peered else []
        return [*farewell, *self._end("closed by request")]

    # ---- what comes in

    def receive(self, frames: Sequence[bytes], now: float) -> list[ClientAction]:
        """Take a message from the server, whatever its octets are."""
        try:
            commands = self._dialect.decode(frames)
        except DecodeError as error:
            return [Report(Refused(error.message_name or "a message", str(error)))]
        return [action for command in commands for action in self.obey(command, now)]

    def obey(self, command: Command, now: float) -> list[ClientAction]:
        """Take a decoded command from the server."""
        if self.phase not in (Phase.OPENING, Phase.OPEN):
            return []
        self._heard = now
        violation = self._dialog.receive(command)
        if violation is not None and not isinstance(command, ErrorCommand):
            return [Report(Refused(command.NAME, str(violation)))]
        if isinstance(command, ErrorCommand) and self._subscribing.resuming:
            reason = f"the server does not go on with a file: {command.reason}"
            return [*self._resuming.give_up(), *self._lose(reason, now)]
        return dispatch_to_client(self, command, now)

    def on_ohai_ok(self, message: OhaiOk, now: float) -> list[ClientAction]:
        """Grant credit and subscribe."""
        self.phase = Phase.OPEN
        if self._check_at == math.inf:
            self._check_at = now + self._check_s
        for path in self._paths:
            self._subscribing.add(path)
        return [Report(PeerOpened(self._server)), *self._grant(now), *self._ask_next(now)]

    def on_icanhaz_ok(self, message: IcanhazOk, now: float) -> list[ClientAction]:
        """Go on with the next parts of the cache, or the next path."""
        self._reconnecting.was_of_use()
        commands = self._subscribing.confirm()
        if not self._subscribing.done:
            return [self._send(command, now) for command in commands]
        path = self._subscribing.finish()
        return [*([Report(Subscribed(path))] if path else []), *self._ask_next(now)]

    def on_cheezburger(self, message: Cheezburger, now: float) -> list[ClientAction]:
        """Hand content to the disk."""
        try:
            steps = self._intake.take(message)
        except OverrunError as error:
            return self._end(str(error))
        except GapError as error:
            return self._lose(str(error), now)
        actions: list[ClientAction] = []
        for step in steps:
            actions += self._take_failure(step, now) if isinstance(step, Failed) else [step]
        return [*actions, *self._grant(now)]

    def on_hugz(self, message: Hugz, now: float) -> list[ClientAction]:
        """Show life."""
        return [self._send(HugzOk(), now)]

    def on_hugz_ok(self, message: HugzOk, now: float) -> list[ClientAction]:
        """Be content: every message is a sign of life already."""
        self._asked_for_life = False
        return []

    def on_kthxbai(self, message: Kthxbai, now: float) -> list[ClientAction]:
        """Connect again later."""
        return self._lose("the server said KTHXBAI", now)

    def on_srsly(self, message: Srsly, now: float) -> list[ClientAction]:
        """Give up."""
        return self._end(f"refused: {message.reason}")

    def on_rtfm(self, message: Rtfm, now: float) -> list[ClientAction]:
        """Try once more on a fresh connection, unless it is the version that does not fit."""
        if self.phase is Phase.OPENING:
            return self._end(f"the server does not speak this version: {message.reason}")
        if not self._reconnecting.may_follow_rtfm():
            return self._end(f"the server expected something else, twice: {message.reason}")
        return self._lose(f"the server expected something else: {message.reason}", now)

    def on_wat(self, message: Wat, now: float) -> list[ClientAction]:
        """Give up the path that was asked for; without one, give up."""
        sentence = f"the server cannot read our commands: {message.reason}"
        path = self._subscribing.finish()
        if path is None or self._paths == [path]:
            return self._end(sentence)
        self._paths.remove(path)
        return [Report(Refused(path, message.reason)), *self._lose(sentence, now)]

    # ---- the disk and the clock

    def settle(self, outcome: Outcome, now: float) -> list[ClientAction]:
        """Take the outcome of disk work."""
        current = outcome.connection == self.connection and self.phase is Phase.OPEN
        match outcome:
            case Wrote(octets=octets) if current:
                self._intake.finish(octets)
                return self._grant(now)
            case Held() if current:
                return self._ask_for_missing(outcome, now)
            case Stored(name=name, size=size, sha1=sha1, verified=verified, copy=copy):
                return [Report(FileReceived(name, size, sha1, verified, copy))]
            case Deleted(name=name, copy=copy):
                return [Report(FileDeleted(name, copy))]
            case Restored(name=name, sha1=sha1):
                return [Report(FileRestored(name, sha1))]
            case Checked(repair=repair):
                self._check_at = now + self._check_s
                repair = repair and current and self._resync and self._habits.deletes_reliably
                return self._list_again(now) if repair else []
            case Failed():
                return self._take_failure(outcome, now)
        return []

    def lost(self, reason: str, now: float) -> list[ClientAction]:
        """The connection is gone, or none could be made: open another after a while."""
        return self._lose(reason, now) if self.phase in (Phase.OPENING, Phase.OPEN) else []

    def excuse_silence(self, now: float) -> None:
        """Nothing was heard because nobody listened: the socket is paused until the disk has caught up."""
        self._heard = now
        self._asked_for_life = False  # what we said does not count as unanswered, so we go on saying it

    def tick(self, now: float) -> list[ClientAction]:
        """Let time pass: heartbeats, an end to a silent connection, a new one, files asked for again."""
        if self.phase is Phase.ENDED:
            return []
        if self.phase is Phase.WAITING:
            return self.open(now) if now >= self._reconnecting.at else []
        silence = now - self._heard
        if silence >= self._expiry_s:
            return self._lose(f"silent for {silence:.1f} s", now)
        if self.phase is Phase.OPENING:
            return []
        return [*self._ask_for_life(now), *self._ask_again(now), *self._check_inbox(now)]

    # ---- subscribing

    def _ask_next(self, now: float) -> list[ClientAction]:
        step = self._subscribing.begin()
        if step is None:
            return []
        return [ListHeld(self.connection, step) if isinstance(step, str) else self._send(step, now)]

    def _ask_for_missing(self, held: Held, now: float) -> list[ClientAction]:
        rest = self._resuming.ask(held.unfinished, self._paths)
        if isinstance(rest, DiscardFile):
            return [rest, *self._ask_for_missing(held, now)]
        commands = self._subscribing.held(held.path, held.digests, rest)
        return [self._send(command, now) for command in commands]

    # ---- content

    def _grant(self, now: float) -> list[ClientAction]:
        credit = self._intake.grant()
        return [self._send(Nom(credit=credit), now)] if credit else []

    def _take_failure(self, failed: Failed, now: float) -> list[ClientAction]:
        if not (failed.again and self._resync):
            return [Report(Refused(failed.name, failed.reason))]
        if self._repair_at is None:
            self._repair_at = self._repair.next_try(now)
        return [Report(Refused(failed.name, f"{failed.reason}; {ASKED_AGAIN}"))]

    def _ask_again(self, now: float) -> list[ClientAction]:
        if self._repair_at is None or now < self._repair_at:
            return []
        self._repair_at = None
        return self._list_again(now)

    def _list_again(self, now: float) -> list[ClientAction]:
        """Compare everything with the server again."""
        for path in self._paths:
            self._subscribing.add(path)
        return self._ask_next(now)

    def _check_inbox(self, now: float) -> list[ClientAction]:
        if now < self._check_at:
            return []
        self._check_at = math.inf  # until this one has ended
        return [CheckInbox(self.connection)]

    # ---- the connection

    def _ask_for_life(self, now: float) -> list[ClientAction]:
        if self._asked_for_life or now - self._sent < self._heartbeat_s:
            return []
        self._asked_for_life = True
        return [self._send(Hugz(), now)]

    def _lose(self, reason: str, now: float) -> list[ClientAction]:
        told = self._reconnecting.lose(reason, now, answered=self.phase is Phase.OPEN)
        self.phase = Phase.WAITING
        news = [] if told is None else [Report(PeerClosed(self._server, told))]
        return [*self._disconnect(reason), *news]

    def _end(self, reason: str) -> list[ClientAction]:
        self.phase = Phase.ENDED
        return [*self._disconnect(reason), Report(PeerClosed(self._server, reason, final=True))]

    def _disconnect(self, reason: str) -> list[ClientAction]:
        return [*self._intake.stop(), Close(reason)]

    def _send(self, command: Command, now: float) -> Send:
        if violation := self._dialog.send(command):
            raise OutOfTurnError(str(violation))
        self._sent = now
        return Send(command)
