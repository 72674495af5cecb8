"""HTTP server of a running server's page and metrics, which also reads the totals once a second."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec
from aiohttp import web

from specwire.runtime.observe.access import ConnectionLimiter, read_password
from specwire.runtime.observe.exposition import Exposition
from specwire.runtime.observe.families import Family, gauge
from specwire.runtime.observe.place import Place
from specwire.runtime.observe.site import Site, make_logger
from specwire.runtime.observe.view import LOOK_S, Rate, Rates, Subject, View
from specwire.runtime.transport.accepting import Acceptor
from specwire.runtime.transport.tcp_listener import listen_on

VIEW_S = 0.5
"""A view is shown again for this time: many readers cost at most two views a second."""

LAGS_KEPT = 15
"""Looks whose longest delay is exported: Prometheus usually scrapes every 15 s."""

KEEPALIVE_S = 20.0
ENDING_S = 0.5


class Shown(msgspec.Struct, frozen=True):
    """Content of ``/view.json``; `at` is ISO 8601 in UTC, `every_s` the time between looks at the rates."""

    at: str
    every_s: float
    view: View
    rates: tuple[Rate, ...]


class Showing:
    """Shows a server; ``async with`` starts and stops it.

    Args:
        subject: the server.
        place: where to listen.

    Attributes:
        url: of the page, once started.
    """

    def __init__(self, subject: Subject, place: Place) -> None:
        self._subject, self._place = subject, place
        self._rates = Rates(subject.counted)
        self._lags: deque[float] = deque(maxlen=LAGS_KEPT)
        self._view = b""
        self._viewed_at = float("-inf")
        self.url = ""

    async def start(self) -> None:
        """Listen.

        Raises:
            TransportError: there is no listening there.
            ValueError: the password cannot be used.
        """
        file = self._place.password_file
        password = read_password(Path(file)) if file else ""
        self._clock = asyncio.get_running_loop().time
        listener = listen_on(self._place.host, self._place.port)
        self.url = f"http://{Place(self._place.host, listener.getsockname()[1])}/"
        site = Site(
            self._place.host,
            Exposition(self._measure),
            password=password,
            view=self._show,
            health=self._subject.health,
            note=self._note,
        )
        self._runner = web.AppRunner(
            site.make_application(),
            access_log=None,
            logger=make_logger(),
            keepalive_timeout=KEEPALIVE_S,
            shutdown_timeout=ENDING_S,
        )
        await self._runner.setup()
        assert self._runner.server is not None, "made by setup"
        self._limiter = ConnectionLimiter(self._runner.server)
        loop = asyncio.get_running_loop()
        self._acceptor = Acceptor(listener, self._limiter.admit, self.url)
        self._looking = loop.create_task(self._look())

    async def stop(self) -> None:
        """Stop listening, and end every connection."""
        self._looking.cancel()
        await asyncio.gather(self._looking, return_exceptions=True)
        self._acceptor.close()
        await self._runner.cleanup()
        await self._subject.close()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def _look(self) -> None:
        """Read the totals and the delay of the event loop once a second, and close silent connections."""
        while True:
            self._rates.look(self._subject.totals(), self._clock())
            self._limiter.sweep()
            due = self._clock() + LOOK_S
            await asyncio.sleep(LOOK_S)
            self._lags.append(max(0.0, self._clock() - due))

    def _measure(self) -> Iterable[Family]:
        late = max(self._lags, default=0.0)
        return [
            *self._subject.measure(),
            gauge(
                "specwire_event_loop_lag_seconds",
                f"Longest delay of the event loop in the last {LAGS_KEPT} s.",
                late,
            ),
        ]

    def _show(self) -> bytes:
        now = self._clock()
        if now - self._viewed_at >= VIEW_S:
            at = datetime.now(UTC).isoformat(timespec="seconds")
            shown = Shown(at, LOOK_S, self._subject.view(), self._rates.describe())
            self._view, self._viewed_at = msgspec.json.encode(shown), now
        return self._view

    def _note(self, request: web.BaseRequest) -> None:
        self._limiter.note(request.protocol)
