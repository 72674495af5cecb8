"""What is answered to which path; everything else is 404, and everything but GET and HEAD is 405.

/           the page
/view.json  what is in it, for the page itself
/metrics    the measures, for Prometheus
/health     one word; 503 where the server is not well
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from aiohttp import web

from specwire.runtime.observe.exposition import Exposition
from specwire.runtime.observe.http.hosts import is_known_host
from specwire.runtime.observe.http.page import Page
from specwire.runtime.observe.http.password import CHALLENGE, is_allowed
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
    """The answers.

    Args:
        own_host: where the server listens.
        password: what has to be known to look; empty for nothing.
        exposition: writes the measures.
        view: returns what the page shows, as JSON.
        health: returns how the server is.
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
        """Return it as aiohttp runs it."""
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
