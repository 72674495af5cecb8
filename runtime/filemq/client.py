"""Engine of a FILEMQ client: it keeps an inbox equal to what a server publishes.

A connection goes through these phases (the generated session checks the dialog itself):

    OPENING     OHAI was sent; OHAI-OK makes it OPEN, and RTFM means another version and is final
    OPEN        credit is granted, and the paths are subscribed to, one after the other
    WAITING     the connection was lost, or the server ended it; another one follows after a while
    ENDED       ended by the program, or for good by the server

Every error of the server ends the connection. What follows (FILEMQ v2, "The SRSLY Command" and
after): SRSLY is final. WAT in answer to ICANHAZ removes that path, and any other WAT is final,
because the same command must not be repeated. RTFM after OHAI-OK leads to another connection, and a
second RTFM is final unless the server accepted a subscription meanwhile. Silence and KTHXBAI lead
to another connection.

With RESYNC each connection begins with a comparison of digests, so changes that were missed arrive.
The rest of an interrupted file is asked for first. If the server answers that with an error, the
client discards its part of the file, and nothing else. A file that could not be stored is asked for
again, too.

Disk work is ordered in the `DiskQueue`. After a message, small chunks wait for the `Tick` that
`deadline` asks for at once, so that everything that has come joins the batch. While too much waits
for the disk, the client receives nothing, and does not take the silence for the server's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import inf
from typing import Any

from specwire.generated import filemq
from specwire.generated.filemq.machine import ClientHandler, dispatch_to_client
from specwire.runtime.filemq import events
from specwire.runtime.filemq.codec import FILEMQ, Command, Dialect, ErrorCommand
from specwire.runtime.filemq.connection import (
    ClientOptions,
    ConfirmDeletions,
    Effects,
    Paths,
    Subscribe,
    ask_for_missing,
    ask_next,
    grant,
    hugz_at,
    make_connection,
    pause_or_resume,
    show_life,
    subscribe,
)
from specwire.runtime.filemq.diskwork import (
    AcceptDeletions,
    AwaitFiles,
    BatchDone,
    Checked,
    CheckInbox,
    ContentLost,
    Deleted,
    DiskQueue,
    Failed,
    Held,
    Holdings,
    Outcome,
    Restored,
    Stored,
    Wrote,
)
from specwire.runtime.filemq.incoming import GapError, OverrunError
from specwire.runtime.filemq.status import LOOK_S, Phase, ProgressLooks, UnderWay
from specwire.runtime.kernel.effects import Ask, Connect, DropPeer, Log, Stop
from specwire.runtime.kernel.events import (
    Answered,
    Called,
    Event,
    MessageMalformed,
    MessageReceived,
    Noticed,
    PeerDisconnected,
    PeerId,
    SendFailed,
    Started,
    Stopping,
    Tick,
)
from specwire.runtime.kernel.log import LogEvent, Refused
from specwire.runtime.transport.backoff import Backoff, ReconnectPolicy

ASKED_AGAIN = "it is asked for again"
CONTENT_LOST = "was renamed, and the file under its old name is not here any more"
LONGEST_REPAIR_DELAY_S = 60.0
NEVER_ANSWERED = "no answer at all: nothing speaks FILEMQ there, or the network lets nothing through"


class ClientEngine(ClientHandler[float, Effects]):
    """One subscriber, over as many connections as necessary.

    The methods `on_…` handle the server's commands.

    Args:
        new_identity: returns the routing id of a new connection.

    Raises:
        ValueError: nobody can subscribe to one of the paths.
    """

    def __init__(
        self, settings: ClientOptions, dialect: Dialect = FILEMQ, *, new_identity: Callable[[], bytes]
    ) -> None:
        self.phase = Phase.WAITING
        self._settings, self._dialect, self._new_identity = settings, dialect, new_identity
        self._paths = Paths(settings.paths, dialect.habits, folders=settings.attributes)
        times = {**dialect.timers, **settings.timers}
        self._heartbeat_s, self._expiry_s = times["heartbeat"], times["expiry"]
        self._reconnect = ReconnectPolicy(first_s=times["reconnect"], calm_s=2 * self._expiry_s)
        self._repair = Backoff(first_s=times["reconnect"], longest_s=LONGEST_REPAIR_DELAY_S, calm_s=60.0)
        self._reconnect_at = self._repair_at = self._check_at = self._look_at = inf
        self._may_follow_rtfm = True
        self._looks = ProgressLooks()
        self._disk, self._holdings = DiskQueue(), Holdings()
        self._stopping: str | None = None
        self._peer: PeerId | None = None  # of a connection that has not ended
        self._connection = make_connection(0, settings, dialect, self._paths, 0.0)

    # ---- what the program reads

    @property
    def pending_octets(self) -> int:
        """Content of this connection that was received and is not on the disk yet."""
        return self._connection.intake.pending_octets

    @property
    def under_way(self) -> UnderWay | None:
        """The file that is arriving, with its rate."""
        file = self._connection.intake.under_way
        return file and self._looks.rated(file)

    @property
    def paths(self) -> tuple[str, ...]:
        """Paths to subscribe to, with or without a connection."""
        return tuple(self._paths)

    @property
    def holdings(self) -> Mapping[str, str]:
        """SHA-1 by name of the files in the inbox under the paths, as far as they were listed."""
        return self._holdings.digests

    def check_path(self, path: str) -> str:
        """Return a path for `Subscribe`; raises ValueError if nobody can subscribe to it."""
        return self._paths.check(path)

    # ---- events

    def deadline(self) -> float | None:
        """Return when the host must call `handle` with `Tick`; see `Engine`."""
        if self._disk.is_ready:
            return -inf
        times = [self._look_at, *(until for _, until in self._holdings.calls.values())]
        connection = self._connection
        match self.phase:
            case Phase.WAITING:
                times.append(self._reconnect_at)
            case Phase.OPENING:
                times.append(connection.received_at + self._expiry_s)
            case Phase.OPEN:
                times += (connection.received_at + self._expiry_s, self._repair_at, self._check_at)
                times.append(hugz_at(connection, self._heartbeat_s))
        at = min(times)
        return None if at == inf else at

    def handle(self, event: Event, now: float) -> Effects:
        """Handle an event; see `Engine`."""
        effects = self._react(event, now)
        if (batch := self._disk.next_batch(gather=isinstance(event, MessageReceived))) is not None:
            effects.append(Ask(batch))
        if self._peer is not None:
            effects += pause_or_resume(self._connection, self._disk, now)
        if self._holdings.calls:
            effects += self._holdings.answers(now)
        if self._stopping is not None and self._disk.is_idle:
            effects.append(Stop(self._stopping))
        return effects

    def _react(self, event: Event, now: float) -> Effects:
        match event:
            case MessageReceived(peer=peer, message=message):
                return self._receive(message, now) if peer == self._peer else []
            case Answered(value=BatchDone(outcomes=outcomes, pending=pending)):
                self._disk.end_batch(pending=pending)
                return [effect for outcome in outcomes for effect in self._on_outcome(outcome, now)]
            case Answered(failure=failure):  # a fault: an error of the disk is an outcome
                self._disk.fail()
                return self._close(f"the disk work has failed: {failure}", now)
            case Tick():
                return self._tick(now)
            case PeerDisconnected(peer=peer, reason=reason) if peer == self._peer:
                self._connection.is_silent = False
                return self._lose(reason, now)
            case MessageMalformed(peer=peer, error=error) if peer == self._peer:
                self._connection.is_silent = False
                return [Log(Refused(error.message_name or "a message", str(error)))]
            case SendFailed(peer=peer, reason=reason) if peer == self._peer:
                return self._end(f"a command cannot be sent: {reason}")
            case Noticed(value=value):
                return self._on_notice(value, now)
            case Called(call=call, request=AwaitFiles() as request):
                self._holdings.wait(call, request, now)
            case Started():
                return self._open(now)
            case Stopping(reason=reason):
                self._stopping = reason
                return self._close("closed by request", now)
        return []

    def _on_notice(self, notice: Any, now: float) -> Effects:
        match notice:
            case Subscribe(path=path):
                self._paths.add(path)
                if self.phase is Phase.OPEN:
                    return subscribe(self._connection, self._disk, [path], now)
            case ConfirmDeletions():
                self._disk.add(AcceptDeletions(self._connection.number))
        return []

    def _ask_for_all(self, now: float) -> Effects:
        """Subscribe to every path, which compares everything with the server."""
        return subscribe(self._connection, self._disk, self._paths, now)

    # ---- commands of the server

    def _receive(self, command: Command, now: float) -> Effects:
        connection = self._connection
        connection.received_at, connection.is_silent = now, False
        violation = connection.dialog.receive(command)
        if isinstance(command, ErrorCommand):
            if connection.subscribing.is_resuming:
                for order in connection.resuming.give_up():
                    self._disk.add(order)
                return self._lose(f"the server does not continue a file: {command.reason}", now)
        elif violation is not None:
            return [Log(Refused(command.NAME, str(violation)))]
        return dispatch_to_client(self, command, now)

    def on_ohai_ok(self, message: filemq.OhaiOk, now: float) -> Effects:
        """Grant credit and subscribe."""
        self.phase = Phase.OPEN
        if self._check_at == inf:
            self._check_at = now + self._settings.check_s
        opened = Log(events.PeerOpened(self._settings.endpoint))
        return [opened, *grant(self._connection, now), *self._ask_for_all(now)]

    def on_icanhaz_ok(self, message: filemq.IcanhazOk, now: float) -> Effects:
        """Send the next parts of the cache, or subscribe to the next path."""
        self._may_follow_rtfm = True
        connection = self._connection
        commands = connection.subscribing.confirm()
        if not connection.subscribing.is_done:
            return [connection.send(command, now) for command in commands]
        path = connection.subscribing.finish()
        subscribed: Effects = [Log(events.Subscribed(path))] if path else []
        return [*subscribed, *ask_next(connection, self._disk, now)]

    def on_cheezburger(self, message: filemq.Cheezburger, now: float) -> Effects:
        """Order disk work for content."""
        try:
            steps = self._connection.intake.receive(message)
        except OverrunError as error:
            return self._end(str(error))
        except GapError as error:
            return self._lose(str(error), now)
        effects: Effects = []
        for step in steps:
            if isinstance(step, Failed):
                effects += self._on_failure(step, now)
            elif isinstance(step, LogEvent):
                effects.append(Log(step))
            else:
                self._disk.add(step)
        if self._look_at == inf:
            self._look(now)
        return [*effects, *grant(self._connection, now)]

    def on_hugz(self, message: filemq.Hugz, now: float) -> Effects:
        """Answer the heartbeat."""
        return [self._connection.send(filemq.HugzOk(), now)]

    def on_hugz_ok(self, message: filemq.HugzOk, now: float) -> Effects:
        """Note the answer; every message shows that the server is there."""
        self._connection.awaits_life = False
        return []

    def on_kthxbai(self, message: filemq.Kthxbai, now: float) -> Effects:
        """Connect again later."""
        return self._lose("the server said KTHXBAI", now)

    def on_srsly(self, message: filemq.Srsly, now: float) -> Effects:
        """End: the server refuses this client."""
        return self._end(f"refused: {message.reason}")

    def on_rtfm(self, message: filemq.Rtfm, now: float) -> Effects:
        """Connect once more, unless the server speaks another version."""
        if self.phase is Phase.OPENING:
            return self._end(f"the server does not speak this version: {message.reason}")
        if not self._may_follow_rtfm:
            return self._end(f"the server expected something else, twice: {message.reason}")
        self._may_follow_rtfm = False
        return self._lose(f"the server expected something else: {message.reason}", now)

    def on_wat(self, message: filemq.Wat, now: float) -> Effects:
        """Remove the path that was asked for; end if there is none, or no other."""
        reason = f"the server cannot read our commands: {message.reason}"
        path = self._connection.subscribing.finish()
        if path is None or self._paths == [path]:
            return self._end(reason)
        self._paths.remove(path)
        return [Log(Refused(path, message.reason)), *self._lose(reason, now)]

    # ---- outcomes of disk work

    def _on_outcome(self, outcome: Outcome, now: float) -> Effects:
        """Handle an outcome. Of an earlier connection, `Wrote`, `Held` and `Checked` are ignored."""
        is_current = outcome.connection == self._connection.number and self.phase is Phase.OPEN
        if isinstance(outcome, Wrote):
            if not is_current:
                return []
            self._connection.intake.pending_octets -= outcome.octets
            return grant(self._connection, now)
        self._holdings.apply(outcome)
        match outcome:
            case Held() if is_current:
                return ask_for_missing(self._connection, self._disk, outcome, now)
            case Stored(name=name, size=size, sha1=sha1, verified=verified, copy=copy):
                return [Log(events.FileReceived(name, size, sha1, verified, copy))]
            case Deleted(name=name, copy=copy):
                return [Log(events.FileDeleted(name, copy))]
            case Restored(name=name, sha1=sha1):
                return [Log(events.FileRestored(name, sha1))]
            case ContentLost(connection=number, name=name):
                self._connection.subscribing.drop_renames()
                return self._on_failure(Failed(number, name, CONTENT_LOST, again=True), now)
            case Failed():
                return self._on_failure(outcome, now)
            case Checked(repair=repair):
                self._check_at = now + self._settings.check_s
                if repair and is_current and self._settings.resync and self._dialect.habits.deletes_reliably:
                    return self._ask_for_all(now)
        return []

    def _on_failure(self, failed: Failed, now: float) -> Effects:
        """Ask for the file again after a while, if it may be stored then."""
        if not (failed.again and self._settings.resync):
            return [Log(Refused(failed.name, failed.reason))]
        if self._repair_at == inf:
            self._repair_at = self._repair.next_try(now)
        return [Log(Refused(failed.name, f"{failed.reason}; {ASKED_AGAIN}"))]

    # ---- time

    def _tick(self, now: float) -> Effects:
        effects: Effects = self._look(now) if now >= self._look_at else []
        connection = self._connection
        if connection.is_paused:
            connection.received_at = now
        match self.phase:
            case Phase.WAITING if now >= self._reconnect_at:
                effects += self._open(now)
            case Phase.OPENING | Phase.OPEN if now >= connection.received_at + self._expiry_s:
                effects += self._lose(f"silent for {now - connection.received_at:.1f} s", now)
            case Phase.OPEN:
                effects += show_life(connection, self._heartbeat_s, now)
                if now >= self._repair_at:
                    self._repair_at = inf
                    effects += self._ask_for_all(now)
                if now >= self._check_at:
                    self._check_at = inf  # until this comparison has ended
                    self._disk.add(CheckInbox(connection.number))
        return effects

    def _look(self, now: float) -> Effects:
        """Report the progress of the arriving file, once a second as long as there is one."""
        file = self._connection.intake.under_way
        self._look_at = inf if file is None else now + LOOK_S
        return [Log(event) for event in self._looks.look([] if file is None else [file], now)]

    # ---- connections

    def _open(self, now: float) -> Effects:
        number = self._connection.number + 1
        connection = make_connection(number, self._settings, self._dialect, self._paths, now)
        self._connection, self._peer, self.phase = connection, connection.peer, Phase.OPENING
        self._repair_at = inf  # everything is compared when the connection is open
        connect = Connect(connection.peer, self._settings.endpoint, self._new_identity())
        return [connect, connection.send(filemq.Ohai(), now)]

    def _lose(self, reason: str, now: float) -> Effects:
        """Close the connection, and open another one later."""
        at, text = self._reconnect.fail(reason, now, answered=self.phase is Phase.OPEN)
        self._reconnect_at, self.phase = at, Phase.WAITING
        if text and self._connection.is_silent:
            text = f"{text}, {NEVER_ANSWERED}"
        news: Effects = [Log(events.PeerClosed(self._settings.endpoint, text))] if text else []
        return [*self._disconnect(), *news]

    def _close(self, reason: str, now: float) -> Effects:
        """Say KTHXBAI and end."""
        if self.phase is Phase.ENDED:
            return []
        farewell: Effects = [self._connection.send(filemq.Kthxbai(), now)] if self.phase is Phase.OPEN else []
        return [*farewell, *self._end(reason)]

    def _end(self, reason: str) -> Effects:
        self.phase = Phase.ENDED
        return [*self._disconnect(), Log(events.PeerClosed(self._settings.endpoint, reason, final=True))]

    def _disconnect(self) -> Effects:
        for order in self._connection.intake.stop():
            self._disk.add(order)
        if self._peer is None:
            return []
        drop, self._peer = DropPeer(self._peer), None
        return [drop]
