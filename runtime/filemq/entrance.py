"""Where clients come in: a server's ROUTER with its context, a watch on who does not get in and, where clients have
to prove a name, its guard.

They are opened and closed together, in the order that libzmq wants: guard and watch are at their posts before the
socket is bound, the watch ends before the socket, and the guard's own socket is closed before the context, which
would wait for it without end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from specwire.runtime.filemq.access import Clients, ServerSecurity, fault_in_security
from specwire.runtime.transport.arrivals import Arrivals
from specwire.runtime.transport.context import TransportContext
from specwire.runtime.transport.guard import Guard
from specwire.runtime.transport.inflow import Inflow, InflowBounds
from specwire.runtime.transport.keys import KeyPair
from specwire.runtime.transport.rekeying import change_keys
from specwire.runtime.transport.router import MAX_FRAME_OCTETS, Router
from specwire.runtime.transport.security import CurveServer, PlainServer, refuse_exposure

BOUNDS = InflowBounds(message_octets=MAX_FRAME_OCTETS, legal_octets=MAX_FRAME_OCTETS)
"""Each command of a client is one frame."""


class Entrance:
    """What a server asks of those who come in; `open` makes the socket, `close` ends it.

    Args:
        security: what clients have to prove.
        clients: who is let in; None: whoever knows the server's CURVE key.
        insecure: listen beyond this machine even without CURVE.
        bounds: what a client may send without ending a message.

    Attributes:
        router: the socket, once open.

    Raises:
        ValueError: `clients` do not go with `security`.
    """

    router: Router

    def __init__(
        self,
        security: ServerSecurity,
        clients: Clients | None,
        *,
        insecure: bool,
        bounds: InflowBounds = BOUNDS,
    ) -> None:
        if fault := fault_in_security(security, clients):
            raise ValueError(fault)
        self._security, self._clients, self._insecure = security, clients, insecure
        self._bounds = bounds

    async def open(
        self,
        endpoint: str,
        *,
        on_message: Callable[[bytes, list[bytes]], None],
        on_sent: Callable[[bytes, Sequence[bytes]], None],
        on_room: Callable[[bytes], None],
        on_gone: Callable[[bytes, str], None],
        on_turned_away: Callable[[str], None],
        on_cut: Callable[[str], None],
    ) -> None:
        """Make the socket for `endpoint`, which is left to bind; see `Router`, `Guard` and `Inflow` for the callbacks.

        Raises:
            TransportError: the keys are none, or others could reach it who prove nothing (ExposureError).
        """
        refuse_exposure(endpoint, self._security, insecure=self._insecure)
        self._context = TransportContext()
        self._guard = self._post_guard(on_turned_away)
        try:
            self.router = Router(
                self._context,
                on_message=on_message,
                on_sent=on_sent,
                on_room=on_room,
                on_gone=on_gone,
                security=self._security,
            )
        except BaseException:
            await self._close_context()
            raise
        try:
            link = self.router.link
            inflow = Inflow(link, self._bounds, on_cut)
            self._arrivals = Arrivals(self._context, link, on_turned_away, inflow=inflow)
        except BaseException:
            self.router.close()
            await self._close_context()
            raise

    async def change_keys(self, keys: KeyPair, endpoint: str, say: Callable[[str], None]) -> None:
        """Prove to be the server by other keys; see `rekeying`. Raises TransportError."""
        await change_keys(self.router.link, keys, (endpoint,), say)

    async def close(self, *, linger_s: float) -> None:
        """Close; messages that libzmq has queued are sent for at most `linger_s`."""
        self._arrivals.close()
        self.router.close(linger_s=linger_s)
        await self._close_context()

    async def _close_context(self) -> None:
        if self._guard is not None:
            self._guard.close()
        await self._context.close()

    def _post_guard(self, on_turned_away: Callable[[str], None]) -> Guard | None:
        if not isinstance(self._security, PlainServer | CurveServer):
            return None
        curve = isinstance(self._security, CurveServer)
        guard = Guard(
            self._context,
            names=self._clients.names if self._clients is not None and curve else None,
            any_key=self._clients is None and curve,
            passwords=self._clients.passwords if self._clients is not None and not curve else None,
            on_refused=on_turned_away,
        )
        guard.start()
        return guard
