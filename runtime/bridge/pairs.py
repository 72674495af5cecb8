"""Which dialects there is a bridge between."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from specwire.runtime.bridge import filemq_words, flux, norfab
from specwire.runtime.bridge.filemq_old_client import OldClientTranslation
from specwire.runtime.bridge.filemq_old_server import OldServerTranslation
from specwire.runtime.bridge.translation import Translation

Make = Callable[[str, str], Translation]


def _bridge_filemq(clients: str, server: str) -> Translation:
    return OldServerTranslation() if clients == "filemq" else OldClientTranslation()


FAMILIES: tuple[tuple[tuple[str, ...], Make], ...] = (
    (flux.NAMES, flux.FluxTranslation),
    (filemq_words.NAMES, _bridge_filemq),
    (norfab.NAMES, norfab.NorfabTranslation),
)


def find_bridge(clients: str, server: str) -> Callable[[], Translation]:
    """Return what makes the translation of a connection; ValueError, with one sentence, where there is none."""
    for names, make in FAMILIES:
        if clients in names and server in names:
            if clients == server:
                raise ValueError(f"both sides speak {clients}: they need no bridge")
            return partial(make, clients, server)
    known = "; ".join(" and ".join(names) for names, _ in FAMILIES)
    raise ValueError(f"there is no bridge between {clients} and {server}; there are bridges between {known}")
