"""A protocol compiled during the job: a ticker, specified in nine lines, with server and client.

The specification is imported, compiled and loaded in the same way as a user's. The server is a
ROUTER, the client a DEALER. The generated package encodes and decodes every message.
"""

from __future__ import annotations

import asyncio
import random
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec

from specwire.runtime.cli.job.taps import Taps
from specwire.runtime.transport.context import TransportContext
from specwire.runtime.transport.dealer import Dealer
from specwire.runtime.transport.router import Router

NAME = "ticker"
SPECIFICATION = """\
# Ticker

A client subscribes to a symbol; the server sends a quote whenever the price changes.

    ticker      = *( C:subscribe *S:quote )
    subscribe   = %x01 symbol
    quote       = %x02 symbol price
    symbol      = OCTET *VCHAR      ; length, then text
    price       = 8OCTET            ; an integer in network order
"""

FIRST_PRICES = {"ACME": 1_250, "GLOBEX": 98_000, "INITECH": 2**63}
"""First price of each symbol; the last needs all 64 bits."""
QUOTES = 200
"""Quotes of each symbol."""


class TickerResult(msgspec.Struct, frozen=True):
    """Quotes received, the last price of each symbol, and quotes that were not received as sent."""

    quotes: int
    last_prices: dict[str, int]
    faults: tuple[str, ...]


def make_prices() -> dict[str, list[int]]:
    """Return the prices of each symbol; the same in every run."""
    source = random.Random(NAME)
    prices = {symbol: [first] for symbol, first in FIRST_PRICES.items()}
    for quoted in prices.values():
        while len(quoted) < QUOTES:
            quoted.append(quoted[-1] + source.choice((-2, -1, 1, 2)))
    return prices


async def run_ticker(ticker: ModuleType, taps: Taps) -> TickerResult:
    """Serve quotes to one client, with the generated package `ticker`.

    Raises:
        ConnectionError: the connection was lost.
        TransportError: the server could not bind, or the client could not connect.
    """
    tap = taps.open(NAME, "ticker-server", ticker.EDITION)
    prices = make_prices()
    received: dict[str, list[int]] = {symbol: [] for symbol in prices}
    finished: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def serve(peer: bytes, frames: list[bytes]) -> None:
        """Answer a subscription with all quotes of its symbol."""
        conversation = f"ticker-{peer.hex()}"
        tap.record(sender="C", peer=peer.hex(), conversation=conversation, frames=frames)
        symbol = ticker.decode(frames).symbol
        for price in prices[symbol]:
            quote: Any = ticker.Quote(symbol=symbol, price=price)
            answer = quote.encode()
            tap.record(sender="S", peer=peer.hex(), conversation=conversation, frames=answer)
            router.send(peer, answer)

    def receive(frames: list[bytes]) -> None:
        quote = ticker.decode(frames)
        received[quote.symbol].append(quote.price)
        if all(len(quotes) == QUOTES for quotes in received.values()):
            finished.set_result(None)

    def lose(reason: str) -> None:
        if not finished.done():
            finished.set_exception(ConnectionError(reason))

    context = TransportContext()
    router = Router(
        context,
        on_message=serve,
        on_sent=None,
        on_room=lambda _: None,
        on_gone=lambda _, reason: lose(reason),
    )
    dealer = None
    try:
        endpoint = router.bind("tcp://127.0.0.1:*")
        dealer = Dealer(context, endpoint, on_message=receive, on_sent=lambda _: None, on_lost=lose)
        for symbol in prices:
            dealer.send(ticker.Subscribe(symbol=symbol).encode())
        await finished
    finally:
        if dealer is not None:
            dealer.close()
        router.close()
        await context.close()
    faults = [
        f"the prices of {symbol} changed on the way"
        for symbol in prices
        if received[symbol] != prices[symbol]
    ]
    last = {symbol: quotes[-1] for symbol, quotes in received.items()}
    return TickerResult(sum(map(len, received.values())), last, tuple(faults))


def compile_ticker(out: Path) -> ModuleType:
    """Import the specification, generate its package below `out`, and return the package.

    Raises:
        SpecError: the specification has a fault.
    """
    from specwire.generator.documents.importing import import_document
    from specwire.generator.documents.store import write_imported
    from specwire.runtime.cli.generate import Selection, make_plan
    from specwire.runtime.packages import add_packages, load_package

    document, grammars = out / f"{NAME}.md", out / "grammars"
    document.write_text(SPECIFICATION, encoding="utf-8")
    folder = grammars / NAME
    folder.mkdir(parents=True)
    write_imported(import_document(document, NAME, folder=folder, shown=folder.as_posix()), folder)
    make_plan(grammars, [NAME], out / "wire", Selection(), whole=False).write()
    add_packages(out / "wire")
    return load_package(NAME)
