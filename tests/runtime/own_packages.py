"""Ticker, a protocol that does not come with specwire: its grammar, its package, and octets written by hand."""

from __future__ import annotations

from pathlib import Path

from specwire.generator.packages import package_files
from specwire.generator.pipeline import compile_protocol
from specwire.generator.targets import choose_targets
from tests.runtime.spark.captures import write_capture

GRAMMAR = """\
ticker      = *( C:subscribe *S:quote )
subscribe   = %x01 symbol
quote       = %x02 symbol price
symbol      = OCTET *VCHAR
price       = 8OCTET
"""
GRAMMAR_2 = GRAMMAR.replace("symbol price", "symbol price volume") + "volume      = 4OCTET\n"
"""The second edition: a quote has a volume too."""
EDITION, EDITION_2 = "Ticker", "Ticker 2"
PROFILE = """\
name = "{name}"
title = "Ticker"
edition = "{edition}"
{more}
[roles.C]
name = "client"
socket = "DEALER"

[roles.S]
name = "server"
socket = "ROUTER"
"""
SUBSCRIBE = [b"\x01\x04ACME"]
QUOTE = [b"\x02\x04ACME" + (1250).to_bytes(8, "big")]
LARGE = 9223372036854775808
"""One more than the largest signed integer of 64 bits."""
LARGE_QUOTE = [b"\x02\x04ACME\x80" + bytes(7)]
QUOTE_2 = [b"\x02\x04ACME" + (1300).to_bytes(8, "big") + (500).to_bytes(4, "big")]
"""A quote of 500 pieces, in the second edition."""


def write_grammar(folder: Path, name: str = "ticker", more: str = "", edition: str = EDITION) -> Path:
    """Write the grammar and profile into a folder of grammars, which is returned."""
    place = folder / name
    place.mkdir(parents=True)
    (place / "grammar.abnf").write_text(GRAMMAR_2 if edition == EDITION_2 else GRAMMAR)
    (place / "profile.toml").write_text(PROFILE.format(name=name, more=more, edition=edition))
    return folder


def write_package(
    folder: Path,
    name: str = "ticker",
    targets: tuple[str, ...] | None = None,
    more: str = "",
    edition: str = EDITION,
) -> Path:
    """Generate the package into `folder`/`name`, which is returned."""
    grammars = write_grammar(folder.parent / f"{folder.name}-grammars", name, more, edition)
    protocol = compile_protocol(grammars / name, shown=name).protocol
    for path, text in package_files([protocol], choose_targets(targets)).items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return folder / name


def write_ticker_capture(folder: Path, protocol: str = "ticker") -> Path:
    """Write a capture of one subscription and two quotes that states `protocol`; return its folder."""
    return write_capture(
        folder,
        [("C", SUBSCRIBE), ("S", QUOTE), ("S", LARGE_QUOTE)],
        tap="t-1-0",
        protocol=protocol,
        edition=EDITION,
    )
