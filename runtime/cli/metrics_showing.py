"""What `--metrics` does while a server runs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from specwire.runtime.observe.place import Place
    from specwire.runtime.observe.view import Subject


@asynccontextmanager
async def shown(
    place: Place | None, make_subject: Callable[[], Subject], say: Callable[[str], None]
) -> AsyncIterator[None]:
    """While this lasts, the server shows itself at `place`, where there is one; raises TransportError.

    Args:
        make_subject: returns the server as it is shown; called only where it is.
        say: writes a line of the server's log.
    """
    if place is None:
        yield
        return
    from specwire.runtime.observe.showing import Showing

    async with Showing(make_subject(), place) as showing:
        say(f"metrics and a page at {showing.url}")
        yield
