"""Host: runs one engine on asyncio, with sockets, a store, a clock and the calls of a program.

A host queues what happens as events. A *turn* takes the events to the engine and then performs the
effects in order, at most `STEPS` of both per iteration of the event loop. So all messages of a
wake-up are handled before their effects are performed, and answers leave together. What happens
while effects are performed (a peer turns out to be gone) is handled after them.

Back-pressure: a host stops receiving while more than `MAX_PENDING` events and effects wait, or more
octets wait for the disk than allowed. Then ZeroMQ's queues fill and hold the peers back. `call`
waits meanwhile.

A host is *new*, *starting*, *running*, *stopping* or *stopped*, and `stop` may be called in each
state.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from functools import partial
from time import monotonic
from typing import Any

from specwire.generated.errors import CodecError
from specwire.runtime.capture.counts import count_taps
from specwire.runtime.kernel.commits import Commit, RecordWriter
from specwire.runtime.kernel.effects import (
    Ask,
    AwaitRoom,
    CancelAsk,
    Connect,
    DropPeer,
    HostEffect,
    Log,
    PauseReceiving,
    Return,
    Send,
    Stop,
)
from specwire.runtime.kernel.engine import Engine, MessageCodec
from specwire.runtime.kernel.events import (
    Answered,
    Called,
    Committed,
    Event,
    MessageMalformed,
    MessageReceived,
    Noticed,
    PeerConnected,
    PeerDisconnected,
    PeerId,
    Reloaded,
    RoomMade,
    SendFailed,
    Started,
    Stopping,
    StoreFailing,
    Tick,
)
from specwire.runtime.kernel.log import CLIENT, HostNotice, LogEvent, Refused
from specwire.runtime.kernel.service import HandlerError, HostSettings, HostState, HostStoppedError, Service
from specwire.runtime.kernel.sockets import MessageTap, Sockets
from specwire.runtime.kernel.status import HostCounters, HostStatus, ProcessClock
from specwire.runtime.kernel.store import Failure, StoreError
from specwire.runtime.transport.errors import TransportError
from specwire.runtime.transport.keys import KeyPair
from specwire.runtime.transport.messages import Frames

logger = logging.getLogger(__name__)

STEPS = 256
"""Most events and effects of one iteration of the event loop."""

MAX_PENDING = 4096
"""With more events and effects than this, nothing is received."""

LINGER_S = 0.5


class Host(Service):
    """One run of an engine; ``async with`` starts and stops it.

    Args:
        on_event: called with each event for the log.
        tap: records every message.
        clock: seconds that do not go backwards; the `now` of the engine.

    Attributes:
        was_started: `start` was called, so there are a status and `stopped`.
        stopped: done with the reason when the host has stopped, by `stop` or by the engine.
    """

    def __init__(
        self,
        engine: Engine,
        codec: MessageCodec,
        settings: HostSettings,
        *,
        on_event: Callable[[LogEvent], None],
        tap: MessageTap | None = None,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self.state, self.was_started = HostState.NEW, False
        self._engine, self._codec, self._settings = engine, codec, settings
        self._on_event, self._tap, self._clock = on_event, tap, clock
        self._counters = HostCounters()
        self._events: deque[Event] = deque()
        self._effects: deque[HostEffect] = deque()
        self._performing = False
        self._next_turn: asyncio.Handle | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = 0.0
        self._stop_timer: asyncio.TimerHandle | None = None
        self._calls: dict[int, asyncio.Future[Any]] = {}
        self._last_call = 0
        self._asking: dict[int, asyncio.Future[Any]] = {}
        self._awaiting_room: dict[PeerId, int] = {}
        self._writer: RecordWriter | None = None
        self._is_live = False  # from `Started` to `Stop`: events are handled
        self._releasing: asyncio.Task[None] | None = None
        self._endpoints: dict[str, str] = {}
        self._performers: dict[type, Callable[[Any], None]] = {
            Send: self._send,
            Connect: self._connect,
            DropPeer: self._drop,
            AwaitRoom: self._await_room,
            PauseReceiving: lambda effect: self._sockets.hold(effect.peer, effect.paused),
            Commit: self._commit,
            Ask: self._ask,
            CancelAsk: self._cancel_ask,
            Return: self._return,
            Log: lambda effect: self._on_event(effect.event),
            Stop: self._end,
        }

    # ---- life

    async def start(self) -> None:
        """Open the store and the sockets, and notify the engine.

        Raises:
            StoreError: the store cannot be used.
            TransportError: an endpoint cannot be bound, or credentials are invalid.
            HostStoppedError: the host was started or stopped before.
        """
        if self.state is not HostState.NEW:
            raise HostStoppedError(f"the host is {self.state.value}; it runs once")
        self._loop = asyncio.get_running_loop()
        self._process = ProcessClock()
        self._room = asyncio.Event()
        self._room.set()
        self.stopped: asyncio.Future[str] = self._loop.create_future()
        self._sockets = Sockets(self, self._settings.connections, self._tap)
        self.state, self.was_started = HostState.STARTING, True
        try:
            self._sockets.check_credentials()
            restored = await self._open_store()
            if self.state is not HostState.STARTING:
                raise HostStoppedError("the host was stopped while it started")
            for name, listener in self._settings.listeners.items():
                self._endpoints[name] = self._sockets.listen(name, listener)
        except BaseException:
            await self._release(0.0, "the host could not start")
            raise
        self.state, self._is_live = HostState.RUNNING, True
        self.post(Started(dict(self._endpoints), restored))

    async def stop(self, reason: str = "stopped") -> None:
        """Let the engine say goodbye, commit what it has begun, and release everything.

        May be called in every state, and again: it returns when the host has stopped.
        """
        match self.state:
            case HostState.NEW:
                self.state = HostState.STOPPED
            case HostState.STARTING:
                self.state = HostState.STOPPING
            case HostState.RUNNING:
                self.state = HostState.STOPPING
                self._sockets.pause(True)  # a request that comes now would be answered after the goodbye
                self._stop_timer = self._loop.call_later(self._settings.stop_s, self._force_end, reason)
                self.post(Stopping(reason))
        if self.state is not HostState.STOPPED:
            await asyncio.shield(self.stopped)

    async def call(self, request: Any) -> Any:
        """Call the engine, and return the value of its `Return`, or raise its error.

        Raises:
            HostStoppedError: the host does not run, or stops before the engine has answered.
            UnansweredError: a story has ended without an answer.
        """
        await self._wait_for_room()
        self._last_call += 1
        call, future = self._last_call, self._loop.create_future()
        self._calls[call] = future
        try:
            self.post(Called(call, request))
            return await future
        finally:
            self._calls.pop(call, None)

    def notice(self, value: Any) -> None:
        """Pass something that has changed outside to the engine."""
        self.post(Noticed(value))

    def reload(self, settings: Any) -> None:
        """Pass other settings to the engine."""
        self.post(Reloaded(settings))

    async def change_keys(self, keys: KeyPair) -> None:
        """Bind every CURVE listener again with other keys; raises TransportError."""
        await self._sockets.change_keys(keys)

    def now(self) -> float:
        """Return the time as the engine knows it."""
        return self._clock()

    def status(self) -> HostStatus:
        """Return the status of the host, from `start` on."""
        messages_in, octets_in, messages_out, octets_out = self._sockets.count()
        return HostStatus(
            process=self._process.describe(),
            endpoints=dict(self._endpoints),
            paused=not self._room.is_set(),
            connections=self._sockets.connections,
            pending_effects=len(self._effects),
            messages_in=messages_in,
            messages_out=messages_out,
            octets_in=octets_in,
            octets_out=octets_out,
            counters=self._counters,
            store=None if self._writer is None else self._writer.status(),
            captures=() if self._tap is None else count_taps(self._tap.recorder),
        )

    # ---- what happens

    def post(self, event: Event) -> None:
        """Queue an event. Handle it now if no turn is running or scheduled."""
        if self._is_live:
            self._events.append(event)
            self.on_rest()

    def on_message(self, peer: PeerId, user: str, frames: Frames) -> None:
        """Queue a message, which `on_rest` handles."""
        if self._is_live:
            self._guard(self._decode, (peer, user, frames))

    def on_rest(self) -> None:
        """Handle the messages of a wake-up."""
        if self._events and not self._performing and self._next_turn is None:
            self._run_turn()

    def on_connected(self, peer: PeerId) -> None:
        """Handle a completed handshake."""
        self.post(PeerConnected(peer))

    def on_gone(self, peer: PeerId, reason: str) -> None:
        """Handle that a peer cannot be reached."""
        self._counters.lost += 1
        self._awaiting_room.pop(peer, None)
        self.post(PeerDisconnected(peer, reason))

    def on_room(self, listener: str, routing_id: bytes) -> None:
        """Handle that a peer of a listener may have room again."""
        peer = PeerId(listener, routing_id)
        octets = self._awaiting_room.pop(peer, None)
        if octets is not None:
            self._guard(self._await_room, AwaitRoom(peer, octets))

    def on_refused(self, reason: str) -> None:
        """Log a client that was not admitted."""
        self._counters.refused += 1
        self._on_event(Refused(CLIENT, reason))

    def on_cut(self, reason: str) -> None:
        """Log a client that was cut off."""
        self._counters.cut_off += 1
        self._on_event(Refused(CLIENT, reason))

    # ---- the engine

    def _decode(self, arrived: tuple[PeerId, str, Frames]) -> None:
        peer, user, frames = arrived
        try:
            for message in self._codec.decode(peer, frames):
                self._events.append(MessageReceived(peer, message, user))
        except CodecError as error:
            self._counters.malformed += 1
            self._events.append(MessageMalformed(peer, error, user))

    def _handle(self, event: Event) -> None:
        """Let the engine handle an event, and queue its effects: after a fault, those until then."""
        effects = self._effects
        for effect in self._engine.handle(event, self._clock()):
            if type(effect) is DropPeer and effect.discard:
                kept = [one for one in effects if not (type(one) is Send and one.peer == effect.peer)]
                effects.clear()
                effects.extend(kept)
            effects.append(effect)

    def _guard(self, function: Callable[[Any], None], argument: Any) -> None:
        """Call `function`. A fault of ours costs one message, event or effect, and no peer.

        The story that waits for the outcome of a faulty effect is resumed with a failure.
        """
        try:
            function(argument)
        except Exception as error:  # noqa: BLE001 - the engine, a codec and records are called here
            self._note_fault(argument)
            failure = f"a fault of specwire: {error!r}"
            match argument:
                case Commit(ticket=ticket):
                    self.post(Committed(0, (Failure(ticket, failure),)))
                case Ask(ticket=ticket):
                    self.post(Answered(ticket, failure=failure))

    def _note_fault(self, about: object, error: BaseException | None = None) -> None:
        self._counters.faults += 1
        logger.error("a fault in handling %s", type(about).__name__, exc_info=error or True)

    def _run_turn(self) -> None:
        """Handle events, perform their effects, and schedule the rest."""
        self._next_turn = None
        self._performing = True
        effects, events = self._effects, self._events
        left = STEPS
        self._sockets.gather()
        try:
            while left and (effects or events):
                for _ in range(min(left, len(events))):
                    left -= 1
                    self._guard(self._handle, events.popleft())
                while left and effects:
                    left -= 1
                    effect = effects.popleft()
                    self._guard(self._performers.get(type(effect), _refuse), effect)
            self._guard(Sockets.settle, self._sockets)
        finally:
            self._performing = False
        if self._is_live:
            if effects or events:
                self._next_turn = self._loop.call_soon(self._run_turn)
            self._apply_pressure()
            self._set_timer()

    def _apply_pressure(self) -> None:
        """Stop receiving while too much waits, and begin again when half of it is done."""
        limit = MAX_PENDING if self._room.is_set() else MAX_PENDING // 2
        behind = self._writer is not None and self._writer.is_behind
        has_room = len(self._effects) + len(self._events) <= limit and not behind
        if has_room != self._room.is_set() and self.state is HostState.RUNNING:
            self._sockets.pause(not has_room)
            if has_room:
                self._room.set()
            else:
                self._room.clear()

    async def _wait_for_room(self) -> None:
        if self.state is HostState.RUNNING:
            await self._room.wait()
        if not self._is_live:
            raise HostStoppedError(f"the host is {self.state.value}")

    def _set_timer(self) -> None:
        """Set the timer. One that is set too early is kept, and set again when it fires."""
        at = self._engine.deadline()
        if at is None or not self._is_live or (self._timer is not None and self._timer_at <= at):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at = at
        self._timer = self._loop.call_later(max(0.0, at - self._clock()), self._on_time)

    def _on_time(self) -> None:
        self._timer = None
        at = self._engine.deadline()
        if at is not None and at <= self._clock():
            self.post(Tick())
        self._set_timer()

    # ---- effects

    def _send(self, effect: Send) -> None:
        try:
            frames = self._codec.encode(effect.peer, effect.message)
        except CodecError as error:
            self.post(SendFailed(effect.peer, effect.message, str(error)))
        else:
            self._sockets.send(effect.peer, frames)

    def _drop(self, effect: DropPeer) -> None:
        self._awaiting_room.pop(effect.peer, None)
        self._sockets.drop(effect.peer)

    def _await_room(self, effect: AwaitRoom) -> None:
        room = self._sockets.reserve(effect.peer, effect.octets)
        if room is None:
            self._awaiting_room[effect.peer] = effect.octets
        else:
            self.post(RoomMade(effect.peer, room))

    def _connect(self, effect: Connect) -> None:
        try:
            self._sockets.connect(effect)
        except TransportError as error:
            self.post(PeerDisconnected(effect.peer, str(error)))

    def _commit(self, effect: Commit) -> None:
        assert self._writer is not None, "the engine commits, and the host has no store"
        self._writer.write(effect)

    def _ask(self, effect: Ask) -> None:
        kind = type(effect.request)
        handler = self._settings.handlers.get(kind)
        assert handler is not None, f"the engine asks for {kind.__name__}, and the host has no handler for it"
        task = asyncio.ensure_future(handler(effect.request))
        self._asking[effect.ticket] = task
        task.add_done_callback(partial(self._on_answer, effect))

    def _on_answer(self, effect: Ask, task: asyncio.Future[Any]) -> None:
        del self._asking[effect.ticket]
        if task.cancelled():
            return
        error = task.exception()
        if error is None:
            self.post(Answered(effect.ticket, task.result()))
            return
        if not isinstance(error, HandlerError | OSError):
            self._note_fault(effect.request, error)
        self.post(Answered(effect.ticket, failure=str(error) or type(error).__name__))

    def _cancel_ask(self, effect: CancelAsk) -> None:
        if (task := self._asking.get(effect.ticket)) is not None:
            task.cancel()

    def _return(self, effect: Return) -> None:
        future = self._calls.get(effect.call)
        if future is None or future.done():
            return  # the caller waits no more
        if effect.error is None:
            future.set_result(effect.value)
        else:
            future.set_exception(effect.error)

    def _force_end(self, reason: str) -> None:
        """End, although the engine has not. A cancelled `stop` does not keep the host from ending."""
        self._on_event(HostNotice(f"did not end within {self._settings.stop_s:g} s"))
        self._end(Stop(reason))

    def _end(self, effect: Stop) -> None:
        self.state, self._is_live = HostState.STOPPING, False
        self._effects.clear()
        self._events.clear()
        if self._stop_timer is not None:
            self._stop_timer.cancel()
        self._releasing = self._loop.create_task(self._release(LINGER_S, effect.reason))

    # ---- store, and the end

    async def _open_store(self) -> Any:
        settings = self._settings.store
        if settings is None:
            return None
        self._writer = RecordWriter(
            settings,
            on_committed=self.post,
            on_failing=lambda reason: self.post(StoreFailing(reason)),
            on_notice=lambda notice: self._on_event(HostNotice(notice)),
        )
        return await self._writer.open()

    async def _release(self, linger_s: float, reason: str) -> None:
        """Release everything, in the order in which nothing is lost: the store before the sockets."""
        self.state, self._is_live = HostState.STOPPING, False
        self._room.set()  # a call that waits for room fails now
        for handle in (self._timer, self._next_turn):
            if handle is not None:
                handle.cancel()
        for future in self._calls.values():
            if not future.done():
                future.set_exception(HostStoppedError(f"the host has stopped: {reason}"))
        asking = tuple(self._asking.values())
        for task in asking:
            task.cancel()
        await asyncio.gather(*asking, return_exceptions=True)
        try:
            if self._writer is not None:
                await self._writer.close()
        except StoreError as error:
            self._on_event(HostNotice(str(error)))
        finally:
            try:
                await self._sockets.close(linger_s=linger_s)
            finally:
                self.state = HostState.STOPPED
                self.stopped.set_result(reason)


def _refuse(effect: object) -> None:
    raise TypeError(f"the engine yields {effect!r}, which is no effect")
