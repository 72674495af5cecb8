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

from specwire.runtime.capture.recorder import Recorder
from specwire.runtime.norfab.actions import Action, Ask, Fetch, Stopped, Store
from specwire.runtime.norfab.broker import BrokerEngine
from specwire.runtime.norfab.commands import Command, Delete, Event, Post, Response, Role
from specwire.runtime.norfab.events import Dropped, Refused
from specwire.runtime.norfab.records import DeletedRecord
from specwire.runtime.norfab.serve.agenda import Agenda
from specwire.runtime.norfab.serve.counters import Counters
from specwire.runtime.norfab.serve.entrance import Door, Entrance
from specwire.runtime.norfab.serve.events import BrokerEvent, JobDeleted, Noticed, TurnedAway
from specwire.runtime.norfab.serve.handlers import Handler, Handlers
from specwire.runtime.norfab.serve.inmate import USER, MakeInmate
from specwire.runtime.norfab.serve.managing import find_management
from specwire.runtime.norfab.serve.order import Mail, Work, sort_out
from specwire.runtime.norfab.store.brokerstore import BrokerStore
from specwire.runtime.norfab.store.database import Durability
from specwire.runtime.norfab.store.errors import StoreError
from specwire.runtime.norfab.wire import DecodeError, Dialects, EncodeError, encode
from specwire.runtime.transport.keys import KeyPair
from specwire.runtime.transport.link import name_message

logger = logging.getLogger(__name__)

LINGER_S = 0.5
STOP_S = 10.0
"""How long the disk may take for what was begun when the broker is told to stop."""

TOGETHER = 32
"""Tickets that are told together: who hears of them works on it while the next ones are told."""

TOLD = 256
"""Tickets of a commit that are told in one turn of the loop: each of them is a message or several."""

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
    ) -> None:
        self._engine, self._tell, self._counters, self._tap = engine, tell, counters, tap
        self._owns, self._after = owns, after
        self._store = BrokerStore(
            folder,
            durability,
            on_stored=self._on_stored,
            on_failed=lambda ticket, reason: self._perform(engine.not_stored(ticket, reason, self._now())),
            on_damaged=lambda sentence: tell(Noticed(sentence)),
        )
        self._gathering = self._store.gathering
        self._dialects = Dialects()
        self._agenda = Agenda(self._do, self._gather, self._settle)
        self._handlers = Handlers(
            services,
            lambda question, status, body: self._perform(engine.answer(question, status, body, self._now())),
        )
        self._inmate = None if make_inmate is None else make_inmate(self._from_inmate)
        self._stored = self._durable = 0  # up to which ticket the engine was told, and is to be
        self._telling: asyncio.Handle | None = None
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
        if self._telling is not None:
            self._telling.cancel()
        await self._entrance.close(linger_s=linger_s)
        await self._store.close()

    def _now(self) -> float:
        """Seconds since the epoch that never go backwards, whatever is done to the system's clock."""
        return self._offset_s + monotonic()

    # ---- what happens

    def on_messages(self, door: Door, messages: Iterable[tuple[str, list[bytes]]]) -> None:
        """Take messages, each with its user; see `_GATHERED` for when what comes of them is done."""
        self._gathering.hold()
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
            actions = self._engine.receive(peer, received.sender, command, now, user)
            if type(command) is Delete:
                self._tell_deletions(peer, user, actions)
            self._perform(actions)

    def on_rest(self) -> None:
        """The messages that had come were taken."""
        try:
            self._perform(self._engine.done())
        finally:
            self._gathering.settle()

    def _tell_deletions(self, peer: bytes, user: str, actions: Sequence[Action]) -> None:
        for action in actions:
            if type(action) is Store:
                for record in action.records:
                    if type(record) is DeletedRecord:
                        self._tell(JobDeleted(record.uuid, peer, user))

    def _on_stored(self, ticket: int) -> None:
        self._durable = max(self._durable, ticket)
        if self._telling is None:
            self._tell_stored()

    def _tell_stored(self) -> None:
        """Tell the engine bit by bit what is durable, and no more in this turn than is bounded."""
        self._telling = None
        until = min(self._durable, self._stored + TOLD)
        while self._stored < until:
            bit = min(self._stored + TOGETHER, until)
            self._stored = bit
            for _ in range(TOGETHER):  # a fault of ours costs one ticket of these, which is asked for no more
                try:
                    self._perform(self._engine.stored(bit, self._now()))
                    break
                except Exception:
                    logger.exception("what was stored could not be told")
        if self._stored < self._durable:
            self._telling = asyncio.get_running_loop().call_soon(self._tell_stored)

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
        """Somebody did not get in."""
        self._tell(TurnedAway(reason))

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
        """Have kept what is to be kept, and tell what happened: it is written down before anybody hears of it."""
        if not actions:
            return
        if len(actions) == 1 and type(actions[0]) is Store:  # as after a message that came alone
            self._store.write((actions[0],))
            return
        happenings, stores, rest = sort_out(actions)
        if stores:
            self._store.write(stores)
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
