"""Random conversations on sockets: with a peer that is connected to, or with whoever connects."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import suppress

from specwire.generated.errors import DecodeError
from specwire.runtime.rehearsal.conversation import Improviser
from specwire.runtime.rehearsal.language import other_role
from specwire.runtime.rehearsal.lines import LINGER_S, LOCAL, DealerLine, Line, open_local
from specwire.runtime.rehearsal.stage import Stage
from specwire.runtime.transport.arrivals import Arrivals
from specwire.runtime.transport.context import TransportContext
from specwire.runtime.transport.inflow import Inflow, InflowBounds
from specwire.runtime.transport.link import MAX_FRAMES
from specwire.runtime.transport.router import MAX_FRAME_OCTETS, Router
from specwire.runtime.transport.security import NULL, Security

logger = logging.getLogger(__name__)

BOUNDS = InflowBounds(legal_octets=MAX_FRAMES * MAX_FRAME_OCTETS)
MOST_PEERS = 1000
"""Conversations with whoever connects that are open at a time; the one that was silent longest makes room."""

AGAIN_S = 0.2
"""After a connection that did not come about."""


async def call(
    stage: Stage,
    endpoint: str,
    dialogs: Sequence[str],
    *,
    peers: int = 1,
    security: Security = NULL,
    identity: str = "",
) -> None:
    """Hold conversations at `endpoint` until the budget is spent, `peers` at a time.

    Each conversation has a connection of its own, with a routing id of its own: `identity` and a number.

    Raises:
        TransportError: the endpoint or the credentials are none.
        RehearsalError: the protocol is not spoken there.
    """
    context = TransportContext()
    stage.budget.begin(asyncio.get_running_loop().time())
    try:
        async with asyncio.TaskGroup() as group:
            for seat in range(peers):
                caller = _Caller(stage, context, endpoint, dialogs, security, f"{identity}-{seat + 1}")
                group.create_task(caller.run())
    except ExceptionGroup as errors:
        raise errors.exceptions[0] from None
    finally:
        await context.close()


class _Caller:
    """One peer that calls again and again."""

    def __init__(
        self,
        stage: Stage,
        context: TransportContext,
        endpoint: str,
        dialogs: Sequence[str],
        security: Security,
        name: str,
    ) -> None:
        self._stage, self._context, self._endpoint = stage, context, endpoint
        self._dialogs, self._security, self._name = dialogs, security, name
        self._loop = asyncio.get_running_loop()
        self._changed = asyncio.Event()
        self._calls = 0

    async def run(self) -> None:
        """Call until the budget is spent."""
        while not self._stage.budget.spent(self._loop.time()):
            dialog = self._stage.dice.choice(self._dialogs)
            number = self._stage.tally.conversations + 1
            conversation = Improviser(self._stage, dialog, number=number, now=self._loop.time())
            if not await self._hold(conversation):
                await asyncio.sleep(AGAIN_S)

    async def _hold(self, conversation: Improviser) -> bool:
        """Hold one conversation to its end; return whether the other side said anything."""
        heard = False

        def take(frames: Sequence[bytes]) -> None:
            nonlocal heard
            heard = True
            conversation.hear(frames, self._loop.time())
            self._changed.set()

        def lose(reason: str) -> None:
            conversation.lost(reason)
            self._changed.set()

        line = await self._open(take, lose)
        if line is None:
            return False
        try:
            while not conversation.over:
                now = self._loop.time()
                if self._stage.budget.spent(now):
                    conversation.finish(now)
                for frames in conversation.act(now):
                    line.send(frames)
                if not conversation.over:
                    await self._wait(conversation.wakes_at() - self._loop.time())
        finally:
            line.close()
        return heard

    async def _open(
        self, take: Callable[[Sequence[bytes]], None], lose: Callable[[str], None]
    ) -> Line | None:
        self._calls += 1
        if self._endpoint.startswith(LOCAL):
            try:
                package = self._stage.language.package
                return await open_local(package, self._endpoint, on_message=take, on_lost=lose)
            except OSError as error:
                lose(f"no connection is possible ({error.strerror or error})")
                return None
        return DealerLine(
            self._context,
            self._endpoint,
            identity=f"{self._name}-{self._calls}".encode(),
            security=self._security,
            on_message=take,
            on_lost=lose,
        )

    async def _wait(self, seconds: float) -> None:
        self._changed.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, seconds)):
                await self._changed.wait()


class Host:
    """Holds a conversation with each peer that connects.

    Args:
        dialogs: that our side speaks in; where there are several, what a peer says first tells which.
        security: a `Guard` has to know the clients where it is not NULL.
    """

    def __init__(self, stage: Stage, dialogs: Sequence[str]) -> None:
        self._stage, self._dialogs = stage, dialogs
        self._loop = asyncio.get_running_loop()
        self._open: OrderedDict[bytes, Improviser] = OrderedDict()
        self._changed = asyncio.Event()
        self._context = TransportContext()
        self._router = Router(
            self._context,
            on_message=self._take,
            on_sent=lambda _peer, _frames: None,
            on_room=lambda _peer: None,
            on_gone=self._lose,
        )
        self._arrivals = Arrivals(
            self._context,
            self._router.link,
            lambda reason: None,
            inflow=Inflow(self._router.link, BOUNDS, logger.warning),
        )

    def bind(self, endpoint: str) -> str:
        """Listen, and return the endpoint as it is; raises TransportError."""
        return self._router.bind(endpoint)

    async def run(self) -> None:
        """Talk until the budget is spent."""
        self._stage.budget.begin(self._loop.time())
        while True:
            now = self._loop.time()
            spent = self._stage.budget.spent(now)
            wakes_at = now + 0.1
            for peer, conversation in list(self._open.items()):
                if spent:
                    conversation.finish(now)
                for frames in conversation.act(now):
                    self._router.send(peer, frames or [b""])
                if not conversation.over:
                    wakes_at = min(wakes_at, conversation.wakes_at())
            if spent and all(conversation.over for conversation in self._open.values()):
                return
            self._changed.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(max(0.0, wakes_at - self._loop.time())):
                    await self._changed.wait()

    async def close(self) -> None:
        """Listen no more."""
        self._arrivals.close()
        self._router.close(linger_s=LINGER_S)
        await self._context.close()

    def _take(self, peer: bytes, frames: list[bytes]) -> None:
        now = self._loop.time()
        conversation = self._open.get(peer)
        if conversation is None or (conversation.over and self._begins(frames)):
            conversation = self._begin(peer, frames, now)
        self._open.move_to_end(peer)
        conversation.hear(frames, now)
        self._changed.set()

    def _begin(self, peer: bytes, frames: list[bytes], now: float) -> Improviser:
        dialog = self._begins(frames) or self._dialogs[0]
        number = self._stage.tally.conversations + 1
        self._open[peer] = conversation = Improviser(self._stage, dialog, number=number, now=now)
        if len(self._open) > MOST_PEERS:
            _, silent = self._open.popitem(last=False)
            silent.lost("it was silent longest of too many")
        return conversation

    def _begins(self, frames: list[bytes]) -> str | None:
        """Return the dialog that these frames can begin; None for none."""
        language, role = self._stage.language, self._stage.role
        try:
            message = language.decode(frames)
        except DecodeError:
            return None
        for dialog in self._dialogs:
            sender = other_role(language.dialog(dialog), role)
            session = language.session(role, dialog)
            if language.can_be_from(sender, message) and session.observe(sender, message) is None:
                return dialog
        return None

    def _lose(self, peer: bytes, reason: str) -> None:
        conversation = self._open.get(peer)
        if conversation is not None:
            conversation.lost(reason)
            self._changed.set()
