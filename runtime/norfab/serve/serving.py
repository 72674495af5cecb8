"""What happens to a running broker, and what it does: sockets, a store and the clock around `BrokerEngine`.

Everything that happens (a message, a commit, an answer, a tick) is given to the engine. Of what it wants, records go to the
store and happenings to who listens, at once; the rest is done from one agenda, in the order that `order` gives it.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from time import monotonic, time
from typing import Any

from specwire.runtime.capture.recorder import Recorder
from specwire.runtime.kernel.store import Durability, Failure, StoreError
from specwire.runtime.norfab.actions import Action, Ask, Fetch, Stopped
from specwire.runtime.norfab.broker import BrokerEngine
from specwire.runtime.norfab.brokerstore import BrokerStore
from specwire.runtime.norfab.commands import Command, Event, Post, Response, Role
from specwire.runtime.norfab.events import Dropped, Refused
from specwire.runtime.norfab.serve.agenda import Agenda
from specwire.runtime.norfab.serve.counters import Counters
from specwire.runtime.norfab.serve.entrance import Door, Entrance
from specwire.runtime.norfab.serve.events import BrokerEvent, CutOff, Noticed, TurnedAway
from specwire.runtime.norfab.serve.handlers import Handler, Handlers
from specwire.runtime.norfab.serve.inmate import USER, MakeInmate
from specwire.runtime.norfab.serve.managing import find_management
from specwire.runtime.norfab.serve.order import Mail, Work, sort_out
from specwire.runtime.norfab.wire import DecodeError, Dialects, EncodeError, encode
from specwire.runtime.transport.keys import KeyPair
from specwire.runtime.transport.link import name_message

logger = logging.getLogger(__name__)

LINGER_S = 0.5
STOP_S = 10.0
"""How long the disk may take for what was begun when the broker is told to stop."""

TOGETHER = 32
"""Committed tickets that the engine handles in one call. Their messages leave before the next ones are handled."""

HANDLED = 256
"""Committed tickets that are handled in one iteration of the event loop. Each is one message or several."""

TICK_S = 0.25
TEND_S = 30.0

_GATHERED = frozenset((Post, Response, Event))
"""What comes of these is done when all that came with them were taken; what comes of others, which are few, at once: who says OPEN
and then more is answered before the rest is looked at."""

_HEADERS: Mapping[bytes, Role] = {b"NFPC01": "client", b"NFPW01": "worker"}


class Serving:
    """One run of a broker, from `open` to `close`.

    Args:
        engine: decides.
        folder, durability: of the store.
        services: who answers what the engine asks.
        make_inmate: makes the worker inside the broker's process, if there is one.
        tell: called with each event.
        owns: whether a user may come in with a routing id; None where nobody proves who it is.
        after: called when what belongs together was told, before any peer hears of it, and at each tick.
        counters: counts what could not be sent.
        tap: gets every message of every peer, in both directions.
        store_options: `connect` and `probe_s` of the store, for tests.

    Attributes:
        stopped: is done with the engine's last word.
        jobs: how many were found in the store.
    """

    def __init__(
        self,
        engine: BrokerEngine,
        folder: Path,
        durability: Durability,
        *,
        services: Mapping[str, Handler],
        make_inmate: MakeInmate | None,
        tell: Callable[[BrokerEvent], None],
        owns: Callable[[str, bytes], bool] | None,
        after: Callable[[], None],
        counters: Counters,
        tap: Recorder | None,
        **store_options: Any,
    ) -> None:
        self._engine, self._tell, self._counters, self._tap = engine, tell, counters, tap
        self._owns, self._after = owns, after
        self._store = BrokerStore(
            folder,
            durability,
            on_committed=self._on_committed,
            on_refusing=lambda reason: self._perform(engine.store_refuses(reason, self._now())),
            on_notice=lambda sentence: tell(Noticed(sentence)),
            **store_options,
        )
        self._dialects = Dialects()
        self._agenda = Agenda(self._do, self._gather, self._settle)
        self._handlers = Handlers(
            services,
            lambda question, status, body: self._perform(engine.answer(question, status, body, self._now())),
        )
        self._inmate = None if make_inmate is None else make_inmate(self._from_inmate)
        self._handled = self._durable = 0  # tickets up to these were reported to the engine, and are durable
        self._handling: asyncio.Handle | None = None
        self._closed = self._paused = False
        self._session = os.urandom(4).hex()
        self._offset_s = time() - monotonic()
        self._background: list[asyncio.Task[None]] = []
        self._fetching: set[asyncio.Task[None]] = set()
        self.stopped: asyncio.Future[Stopped] = asyncio.get_running_loop().create_future()
        self.jobs = 0

    async def open(
        self, entrance: Callable[[Serving], Entrance], front: Sequence[str], back: Sequence[str]
    ) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Take up what was stored, and listen; return the endpoints as bound.

        Raises:
            StoreError: the store cannot be used.
            TransportError: an endpoint cannot be listened on, or is not to be without CURVE (ExposureError).
        """
        await self._store.open()
        try:
            self._entrance = entrance(self)
            self._routers = self._entrance.routers
            self._perform(self._engine.restore(await self._store.load(), self._now()))
            self.jobs = len(self._engine.jobs.by_uuid)
            bound = self._entrance.open(front, back)
        except BaseException:
            await self._release(linger_s=0.0)
            raise
        self._background = [asyncio.create_task(self._tick()), asyncio.create_task(self._tend())]
        if self._inmate is not None:
            self._inmate.start()
        return bound

    async def close(self, reason: str) -> None:
        """Let the workers go, keep what was begun, and release everything."""
        self._entrance.pause()  # what is still under way is not to be answered after the goodbye
        self._perform(self._engine.stop(self._now(), reason))
        try:
            async with asyncio.timeout(STOP_S):
                await asyncio.shield(self.stopped)
        except TimeoutError:
            self._tell(Noticed(f"the disk did not take what was begun within {STOP_S:g} s"))
        await self._release(linger_s=LINGER_S)

    async def change_keys(self, keys: KeyPair) -> None:
        """Prove to be the broker by other keys; raises TransportError."""
        await self._entrance.change_keys(keys, lambda reason: self._tell(Noticed(reason)))

    async def _release(self, *, linger_s: float) -> None:
        background = [*self._background, *self._fetching]
        for task in background:
            task.cancel()
        await asyncio.gather(*background, return_exceptions=True)
        await self._handlers.close()
        if self._inmate is not None:
            await self._inmate.close()
        self._agenda.close()
        if self._handling is not None:
            self._handling.cancel()
        self._closed = True
        await self._entrance.close(linger_s=linger_s)
        await self._store.close()

    def _now(self) -> float:
        """Seconds since the epoch that never go backwards, whatever is done to the system's clock."""
        return self._offset_s + monotonic()

    # ---- what happens

    def on_messages(self, door: Door, messages: Iterable[tuple[str, list[bytes]]]) -> None:
        """Take messages, each with its user; see `_GATHERED` for when what comes of them is done."""
        for user, frames in messages:
            try:
                self._take(door, user, frames[0], frames[1:], self._now())
            except Exception:  # a fault of ours costs one message: the others were taken from the socket, too
                logger.exception("a message could not be handled (%s)", name_message(frames))

    def _take(self, door: Door, user: str, peer: bytes, frames: list[bytes], now: float) -> None:
        if self._tap is not None:
            self._record("W" if _header(frames) == b"NFPW01" else "C", door, peer, frames)
        if self._inmate is not None and peer == self._inmate.peer:
            self._tell(Dropped(peer, "forged", "the name belongs to a worker inside the broker"))
            return
        try:
            received = self._dialects.decode(peer, frames)
        except DecodeError as error:
            role = _HEADERS.get(_header(frames))
            self._perform(self._engine.malformed(peer, role, str(error), now))
            return
        if received.sender not in door:
            reason = f"no {received.sender} comes in at this endpoint"
            self._perform(self._engine.malformed(peer, None, reason, now))
        elif self._owns is not None and not self._owns(user, peer):
            self._tell(Refused(peer, f"{user} may not come in under this name"))
        else:
            command = received.command
            if type(command) is not Response:  # what comes most often, and does nothing
                managed = find_management(peer, user, command, self._engine.access)
                if managed is not None:
                    self._tell(managed)
            if type(command) in _GATHERED:
                self._engine.take(peer, received.sender, command, now, user)
                return
            self._perform(self._engine.receive(peer, received.sender, command, now, user))

    def on_rest(self) -> None:
        """The messages that had come were taken."""
        self._perform(self._engine.done())
        if not self._paused and self._store.store.waiting_octets > self._engine.settings.waiting_octets:
            self._pause()

    def _on_committed(self, last: int, failures: Sequence[Failure]) -> None:
        if self._closed:
            return
        for ticket, reason in failures:
            self._perform(self._engine.not_stored(ticket, reason, self._now()))
        self._durable = max(self._durable, last)
        if self._handling is None:
            self._handle_committed()

    def _handle_committed(self) -> None:
        """Report to the engine what is durable, at most `HANDLED` tickets in this iteration of the event loop."""
        self._handling = None
        until = min(self._durable, self._handled + HANDLED)
        while self._handled < until:
            self._handled = min(self._handled + TOGETHER, until)
            for _ in range(
                TOGETHER
            ):  # once, unless handling a ticket raises: the others are handled all the same
                try:
                    self._perform(self._engine.stored(self._handled, self._now()))
                    break
                except Exception:
                    logger.exception("a committed record could not be handled")
        if self._handled < self._durable:
            self._handling = asyncio.get_running_loop().call_soon(self._handle_committed)

    def _pause(self) -> None:
        """Receive nothing until the disk has taken what waits for it."""
        self._paused = True
        self._entrance.pause()
        self._tell(Noticed(f"the disk is behind: {self._store.store.waiting_octets} octets wait for it"))

    def _resume_if_possible(self) -> None:
        self._engine.excuse_silence(self._now())
        if self._store.store.waiting_octets <= self._engine.settings.waiting_octets // 2:
            self._paused = False
            self._entrance.resume()

    def _from_inmate(self, command: Command) -> None:
        assert self._inmate is not None
        self._perform(self._engine.receive(self._inmate.peer, "worker", command, self._now(), USER))

    def on_sent(self, door: Door, peer: bytes, frames: Sequence[bytes]) -> None:
        """Take note of a message that the network has taken, where there is a tap."""
        self._record("B", door, peer, frames)

    def on_gone(self, door: Door, peer: bytes, reason: str) -> None:
        """A message could not be sent: its peer is gone."""
        self._counters.undelivered += 1
        for role in door:  # one routing id is one connection: it is whichever of them the engine knows
            self._routers[role].forget(peer)
            self._perform(self._engine.unreachable(peer, role, self._now()))

    def on_turned_away(self, reason: str) -> None:
        """Report a failed handshake."""
        self._tell(TurnedAway(reason))

    def on_cut(self, reason: str) -> None:
        """Report a connection that was cut off for an unfinished message."""
        self._tell(CutOff(reason))

    def _record(self, sender: str, door: Door, peer: bytes, frames: Sequence[bytes]) -> None:
        assert self._tap is not None
        label = peer.hex()
        conversation = f"{self._session}-{door[0]}-{label}"
        self._tap.record(sender=sender, peer=label, conversation=conversation, frames=frames)

    async def _tick(self) -> None:
        every_s = min(TICK_S, self._engine.settings.keepalive_s / 4)
        while True:
            await asyncio.sleep(every_s)
            try:
                if self._paused:
                    self._resume_if_possible()
                self._perform(self._engine.tick(self._now()))
                self._after()  # of what was told without a word of the engine
            except Exception:  # a fault of ours: a broker without ticks would lose every worker
                logger.exception("a tick could not be handled")

    async def _tend(self) -> None:
        while True:
            await asyncio.sleep(TEND_S)
            with suppress(StoreError):  # what fails there fails for jobs too, and is told of them
                await self._store.tend()

    async def _fetch(self, wanted: Fetch) -> None:
        body = await self._store.fetch(wanted.uuid, wanted.slot)
        self._perform(self._engine.fetched(wanted.question, body, self._now()))

    # ---- what is to be done

    def _perform(self, actions: Sequence[Action]) -> None:
        """Perform actions: queue commits, report what happened, then do the rest in the order of `sort_out`."""
        if not actions:
            return
        happenings, commits, rest = sort_out(actions)
        if commits:
            self._store.write(commits)
        try:
            if happenings:
                for happening in happenings:
                    self._tell(happening)
                self._after()
        finally:  # what cannot be told costs no peer a message
            if len(rest) > 1:
                self._agenda.add(rest)
            elif rest:
                self._agenda.add_one(rest[0])

    def _gather(self) -> None:
        self._entrance.gather()

    def _settle(self) -> None:
        self._entrance.settle()

    def _do(self, work: Work) -> None:
        match work:
            case Mail():
                self._deliver(work)
            case Ask():
                self._handlers.ask(work)
            case Fetch():
                task = asyncio.create_task(self._fetch(work))
                self._fetching.add(task)
                task.add_done_callback(self._fetching.discard)
            case Stopped():
                if not self.stopped.done():
                    self.stopped.set_result(work)

    def _deliver(self, mail: Mail) -> None:
        peer, role = mail.peer, mail.role
        if self._inmate is not None and role == "worker" and peer == self._inmate.peer:
            for command in mail.commands:
                try:
                    self._inmate.receive(command)
                except Exception:  # a fault of ours costs one command
                    logger.exception("a %s could not be handled inside the broker", type(command).__name__)
            return
        dialect = self._dialects.of(peer, role)
        messages: list[list[bytes]] = []
        for command in mail.commands:
            try:
                messages.append(encode(command, dialect, "broker", role))
            except EncodeError as error:
                reason = f"cannot be told {type(command).__name__}: {error}"
                self._tell(Dropped(peer, "unexpected", reason))
            except Exception:  # as above
                logger.exception("a %s could not be written", type(command).__name__)
        self._routers[role].send_all(peer, messages)


def _header(frames: Sequence[bytes]) -> bytes:
    return bytes(frames[1]) if len(frames) > 1 else b""
