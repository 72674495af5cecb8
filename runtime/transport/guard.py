"""The guard of a server: who may connect, asked by libzmq during each handshake (ZAP, ZeroMQ RFC 27).

libzmq asks through a socket of the context, pyzmq's authenticator answers, and the answer is this module's. A client
that is let in is known by its name from then on: libzmq hands it over with each message. One that is not gets no
reason, as it gives up its handshake and tries again later; the server's log has the reason, at a bounded rate.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from hmac import compare_digest

from zmq.auth.asyncio import AsyncioAuthenticator
from zmq.utils import z85

from specwire.runtime.transport.context import TransportContext

logger = logging.getLogger(__name__)


class Guard:
    """Lets clients in by their CURVE key, or by name and password.

    Args:
        context: of the sockets that are guarded; one guard for each.
        names: the name of each client by its public key (Z85).
        any_key: clients whose key is not in `names` are let in too, each under its key as its name.
        passwords: the password of each user of PLAIN.
        on_refused: called with the reason whenever a client is not let in.
    """

    def __init__(
        self,
        context: TransportContext,
        *,
        names: Mapping[str, str] | None = None,
        any_key: bool = False,
        passwords: Mapping[str, str] | None = None,
        on_refused: Callable[[str], None] = logger.warning,
    ) -> None:
        self._authenticator = _Authenticator(context, names or {}, any_key, passwords or {}, on_refused)

    def start(self) -> None:
        """Answer from now on; before any guarded socket is bound."""
        self._authenticator.start()

    def close(self) -> None:
        """Answer no more."""
        self._authenticator.stop()


class _Authenticator(AsyncioAuthenticator):
    """pyzmq's, with our answers."""

    def __init__(
        self,
        context: TransportContext,
        names: Mapping[str, str],
        any_key: bool,
        passwords: Mapping[str, str],
        on_refused: Callable[[str], None],
    ) -> None:
        quiet = logging.getLogger(f"{__name__}.zap")
        quiet.setLevel(logging.ERROR)  # it writes passwords into its debug log
        super().__init__(context.zmq, log=quiet)
        self._names, self._any_key, self._known_passwords = names, any_key, passwords
        self._on_refused = on_refused

    def curve_user_id(self, client_public_key: bytes) -> str:
        key = z85.encode(client_public_key).decode("ascii")
        return self._names.get(key, key)

    async def _authenticate_curve(self, domain: str, client_key: bytes) -> tuple[bool, bytes]:
        key = z85.encode(client_key).decode("ascii")
        return self._judge(
            self._any_key or key in self._names, f"the key {key} is not in the list of clients"
        )

    def _authenticate_plain(self, domain: str, username: str, password: str) -> tuple[bool, bytes]:
        known = self._known_passwords.get(username)
        # Compared in any case: the time that it takes does not tell which names there are.
        fits = compare_digest(password.encode(), (known or "").encode())
        return self._judge(
            fits and known is not None, f"the name {username!r} with that password is not known"
        )

    def _judge(self, allowed: bool, reason: str) -> tuple[bool, bytes]:
        if not allowed:
            self._on_refused(reason)
        return allowed, b"" if allowed else b"not allowed"
