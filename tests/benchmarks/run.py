"""Measure the generated codecs against Construct, in one process: ``make bench``.

The yardstick is the package's own Construct declaration, interpreted (never ``.compile()``, which changes
errors), with the same validation. Ratios are what counts: the machine's speed is in both numbers. Each
number is the best of several rounds, because everything else that a machine does only adds time.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from time import perf_counter

from rich.console import Console
from rich.table import Table

from specwire.generated import filemq, flux, libfilemq, norfab, norfab_ascii, zmtp
from specwire.generated.messages import Message

PACKAGES = {
    package.__name__.rpartition(".")[2]: package
    for package in (filemq, flux, libfilemq, norfab, norfab_ascii, zmtp)
}
ROUNDS = 7
ROUND_S = 0.05
DIGEST = "407B386BDED4EEB62D59EB8069E0111906DFCC50"
UUID = "9af3256275334e2fbef389b82dabfb0d"


@dataclass(frozen=True)
class Result:
    """Nanoseconds a message, and how many times slower the yardstick was."""

    case: str
    decode_ns: float
    decode_ratio: float
    encode_ns: float
    encode_ratio: float


def cases() -> dict[str, Message]:
    """Return the measured messages by name: those that a busy peer sees most."""
    cache = tuple((f"folder/file-{number:03}.txt", DIGEST) for number in range(20))
    options = (("RESYNC", "1"), ("DEPTH", "all"), ("RESUME", "no"))
    headers = (("size", "1048576"), ("sha-1", DIGEST))
    body = b'{"task": "add", "kwargs": {"a": 1, "b": 2}, "args": [], "timeout": 600}'
    return {
        "flux request, header alone": flux.Request(routes=None, nodeid=0, matchtag=7),
        "flux request": flux.Request(topic="kvs.get", payload=b'{"key":"a"}\0', matchtag=7),
        "filemq NOM": filemq.Nom(credit=1 << 40),
        "filemq CHEEZBURGER": filemq.Cheezburger(5, 1, "/photos/a.jpg", 4096, headers, bytes(1024)),
        "filemq ICANHAZ, 3 options, 20 cached": filemq.Icanhaz("/photos", options, cache),
        "libfilemq CHEEZBURGER": libfilemq.Cheezburger(5, 1, "/photos/a.jpg", 4096, 0, headers, bytes(1024)),
        "norfab POST": norfab.PostClient("service", "all", UUID, body),
        "norfab_ascii RESPONSE": norfab_ascii.ResponseClient(
            service="service", uuid=UUID, status="200", body=body
        ),
        "zmtp READY, 2 properties": zmtp.Ready((("Socket-Type", b"DEALER"), ("Identity", b"peer-1"))),
        "zmtp frame of 1 KiB": zmtp.MessageLast(bytes(1024)),
    }


def best_ns(work: Callable[[], object]) -> float:
    """Return the time of one call in nanoseconds: the best of `ROUNDS` rounds of `ROUND_S` seconds."""
    begun = perf_counter()
    work()
    number = max(1, int(ROUND_S / max(perf_counter() - begun, 1e-7)))
    best = float("inf")
    for _ in range(ROUNDS):
        begun = perf_counter()
        for _ in range(number):
            work()
        best = min(best, (perf_counter() - begun) / number)
    return best * 1e9


def measure(case: str, message: Message) -> Result:
    """Measure one message against its package's declaration of it."""
    package = PACKAGES[message.PROTOCOL]
    frames = message.encode()
    name = type(message).__name__
    declaration = package.constructs.MESSAGES[name]
    stream = b"".join(len(frame).to_bytes(4, "big") + frame for frame in frames)
    flags = getattr(message, "wire_flags", 0)
    _, values = package.constructs.parse(frames)
    assert package.constructs.build(name, values) == frames
    decode, yard_decode = (
        best_ns(lambda: package.decode(frames)),
        best_ns(lambda: declaration.parse(stream, flags=flags)),
    )
    encode, yard_encode = best_ns(message.encode), best_ns(lambda: package.constructs.build(name, values))
    return Result(case, decode, yard_decode / decode, encode, yard_encode / encode)


def main() -> None:
    """Measure every case and print a table, or JSON with ``--json``."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    as_json = parser.parse_args().json
    results = [measure(case, message) for case, message in cases().items()]
    if as_json:
        json.dump([asdict(result) for result in results], sys.stdout, indent=2)
        sys.stdout.write("\n")
        return
    table = Table(title="Generated codec against interpreted Construct, pure Python", title_justify="left")
    table.add_column("message")
    for head in ("decode ns", "x Construct", "encode ns", "x Construct"):
        table.add_column(head, justify="right")
    for r in results:
        cells = (
            f"{r.decode_ns:,.0f}",
            f"{r.decode_ratio:.1f}",
            f"{r.encode_ns:,.0f}",
            f"{r.encode_ratio:.1f}",
        )
        table.add_row(r.case, *cells)
    Console(width=100).print(table)


if __name__ == "__main__":
    main()
