"""HTTP answers by path. Other paths are 404, and methods except GET and HEAD are 405.

/           the page
/view.json  the content of the page, for its script
/metrics    the metrics, for Prometheus
/health     one word; 503 if the server is not well

It also has the page itself (`Page`) and the log of the web server's faults.
"""

from __future__ import annotations

import base64
import hashlib
import logging
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from specwire.runtime.observe.access import CHALLENGE, is_allowed, is_known_host
from specwire.runtime.observe.exposition import Exposition
from specwire.runtime.observe.view import Health

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]

ALWAYS = {
    "Server": "specwire",
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}
JSON = "application/json"


class Site:
    """Handlers of the paths.

    Args:
        own_host: where the server listens.
        password: empty for none.
        exposition: writes the metrics.
        view: returns the content of the page, as JSON.
        health: returns the health of the server.
        note: called with each request, before it is answered.
    """

    def __init__(
        self,
        own_host: str,
        exposition: Exposition,
        *,
        password: str,
        view: Callable[[], bytes],
        health: Callable[[], Health],
        note: Callable[[web.BaseRequest], None],
    ) -> None:
        self._own_host, self._exposition, self._password = own_host, exposition, password
        self._view, self._health, self._note = view, health, note
        self._page = Page()

    def make_application(self) -> web.Application:
        """Return the application for aiohttp."""
        application = web.Application(middlewares=[self._guard], client_max_size=1)
        application.router.add_get("/", self._answer_page)
        application.router.add_get("/view.json", self._answer_view)
        application.router.add_get("/metrics", self._answer_metrics)
        application.router.add_get("/health", self._answer_health)
        return application

    @web.middleware
    async def _guard(self, request: web.Request, handler: Answer) -> web.StreamResponse:
        self._note(request)
        if not is_known_host(request.headers.get("Host", ""), self._own_host):
            return web.Response(status=421, text="this is not the host that you asked for\n", headers=ALWAYS)
        if self._password and not is_allowed(request.headers.get("Authorization", ""), self._password):
            challenge = {**ALWAYS, "WWW-Authenticate": CHALLENGE}
            return web.Response(status=401, text="a password is wanted\n", headers=challenge)
        try:
            response = await handler(request)
        except web.HTTPException as error:
            error.headers.update(ALWAYS)
            raise
        response.headers.update(ALWAYS)
        return response

    async def _answer_page(self, request: web.Request) -> web.StreamResponse:
        response = web.Response(body=self._page.fill(self._view()), content_type="text/html", charset="utf-8")
        response.headers["Content-Security-Policy"] = self._page.policy
        return response

    async def _answer_view(self, request: web.Request) -> web.StreamResponse:
        return web.Response(body=self._view(), content_type=JSON, charset="utf-8")

    async def _answer_metrics(self, request: web.Request) -> web.StreamResponse:
        text, content_type = self._exposition.write(request.headers.get("Accept", ""))
        return web.Response(body=text, headers={"Content-Type": content_type})

    async def _answer_health(self, request: web.Request) -> web.StreamResponse:
        health = self._health()
        return web.Response(text=f"{health.word}\n", status=503 if health.tone == "bad" else 200)


FOLDER = Path(__file__).parent / "assets"
_DANGEROUS = {b"<": b"\\u003c", b">": b"\\u003e", b"&": b"\\u0026"}


class Page:
    """The document around a view.

    Attributes:
        policy: value of ``Content-Security-Policy``.
    """

    def __init__(self) -> None:
        style, script = _read("page.css"), _read("page.js")
        frame = _read("page.html").replace(b"/*style*/", style).replace(b"/*script*/", script)
        self._before, self._after = frame.split(b"/*view*/")
        self.policy = "; ".join(
            (
                "default-src 'none'",
                f"script-src '{_digest(script)}'",
                f"style-src '{_digest(style)}'",
                "connect-src 'self'",
                "img-src data:",
                "base-uri 'none'",
                "form-action 'none'",
                "frame-ancestors 'none'",
            )
        )

    def fill(self, view: bytes) -> bytes:
        """Return the document that begins with a view, which is JSON."""
        for octet, escape in _DANGEROUS.items():
            view = view.replace(octet, escape)
        return self._before + view + self._after


def _read(name: str) -> bytes:
    return (FOLDER / name).read_bytes().strip()


def _digest(octets: bytes) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(octets).digest()).decode()}"


FAULTS = 3
PER_S = 60.0


class FaultsOnly(logging.Filter):
    """Filter that passes at most `FAULTS` records in each `PER_S` seconds.

    A request that is not HTTP is answered with 400, and is not a fault of ours: thousands of them
    must not fill the disk.

    Args:
        clock: seconds that do not go backwards.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock, self._since, self._logged = clock, clock(), 0

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a record is logged."""
        error = record.exc_info[1] if record.exc_info else None
        if record.levelno < logging.ERROR or isinstance(error, HttpProcessingError):
            return False
        now = self._clock()
        if now - self._since >= PER_S:
            self._since, self._logged = now, 0
        self._logged += 1
        return self._logged <= FAULTS


def make_logger() -> logging.Logger:
    """Return the logger for the web server, whose faults are lines of the server's log."""
    logger = logging.getLogger(__name__)
    logger.filters = [FaultsOnly()]
    return logger
