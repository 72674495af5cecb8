"""Other CURVE keys for a server that runs: the same endpoints, bound anew.

libzmq looks at a socket's keys when it binds, and a connection is of the binding that it came in by. So the endpoints are
let go of and bound again. Whoever was connected is disconnected, and comes in again by the new key: a client that
knows only the old one stays out until it is told the new one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from specwire.runtime.transport.errors import TransportError
from specwire.runtime.transport.keys import KeyPair
from specwire.runtime.transport.link import Link

FIRST_TRY_S, LONGEST_TRY_S = 0.01, 1.0
TELL_AFTER_S = 5.0
"""libzmq lets go of a port a moment later; what takes longer than this is told, and tried on."""


async def change_keys(
    link: Link, keys: KeyPair, endpoints: Sequence[str], say: Callable[[str], None]
) -> None:
    """Have a server's socket prove itself by other keys; returns when it listens on all of `endpoints` again,
    or is closed.

    Args:
        endpoints: as they are bound.
        say: takes a line where an endpoint cannot be had again for long.

    Raises:
        TransportError: libzmq does not take the keys, and everything is as it was; or one of `endpoints` is not bound,
            and those behind it keep their keys.
    """
    link.set_server_keys(keys)
    for endpoint in endpoints:  # one after the other: what cannot be let go of keeps nobody from the others
        link.unbind(endpoint)
        await _bind_again(link, endpoint, say)


async def _bind_again(link: Link, endpoint: str, say: Callable[[str], None]) -> None:
    loop = asyncio.get_running_loop()
    tell_at = loop.time() + TELL_AFTER_S
    delay_s = FIRST_TRY_S
    while not link.socket.closed:
        reason = _bind(link, endpoint)
        if reason is None:
            return
        if loop.time() >= tell_at:
            say(f"nobody can connect: {reason}; it is tried again")
            tell_at = loop.time() + TELL_AFTER_S
        await asyncio.sleep(delay_s)
        delay_s = min(2 * delay_s, LONGEST_TRY_S)


def _bind(link: Link, endpoint: str) -> str | None:
    """Bind, or return why that cannot be yet."""
    try:
        link.bind(endpoint)
    except TransportError as error:
        return str(error)
    return None
