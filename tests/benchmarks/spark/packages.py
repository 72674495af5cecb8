"""Decoding messages with variable fields, maps included, by the backends that keep them in Java or in Arrow.

As in `decode`, each has a session of its own. Half as many rows as there: of fewer, the time that Spark needs to plan a
query would be much of what is measured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from pyspark.sql import DataFrame

from specwire.generated import filemq, flux, norfab, zre
from specwire.generated.messages import Message
from tests.benchmarks.spark.captures import in_segments, repeating
from tests.benchmarks.spark.decode import SCAN, WARM, decoded, is_there
from tests.benchmarks.spark.harness import Bench, Row, consume

DIFFERENT = 1000
"""So many messages differ; then they come again."""
WANTED = {"jvm": 2.0}
SESSIONS = ("jvm", "arrow")
"""A session for each of these; what decodes row by row is measured by `decode`."""
UUID = "9af3256275334e2fbef389b82dabfb0d"


def messages() -> dict[str, tuple[str, Sequence[Message]]]:
    """Return the protocol and the messages of each case."""
    numbers = range(DIFFERENT)
    return {
        "filemq CHEEZBURGER, 2 headers, 256 octets": ("filemq", [cheezburger(n) for n in numbers]),
        "norfab POST": ("norfab", [norfab.PostClient("netmiko", "all", UUID, b'{"a": 1}') for _ in numbers]),
        "zre HELLO, 2 groups, 2 headers": ("zre", [hello(n) for n in numbers]),
        "flux RPC on its way": ("flux", [message for n in numbers[::2] for message in rpc(n)]),
    }


def measure(bench: Bench) -> Iterator[Row]:
    """Yield a row for reading alone and one for the session's backend, for each kind of message; half of the rows."""
    (name,) = bench.backends
    count = in_segments(bench.rows / 2)
    for case, (protocol, some) in messages().items():
        if not is_there(bench, protocol):
            continue
        segments = bench.capture(case.replace(" ", "-"), protocol, count, repeating(some))
        whole = partial(bench.read, segments)
        ways: dict[str, Callable[[], object]] = {SCAN: partial(scanned, whole)}
        ways[name] = partial(decoded, whole, protocol, name)
        yield from bench.take_turns(f"{case}: {name}", ways, count, wanted=WANTED, warm=WARM)


def scanned(frame: Callable[[], DataFrame]) -> None:
    """Read all of a capture."""
    consume(frame())


def cheezburger(number: int) -> Message:
    """A piece of a file, with a name and two headers."""
    headers = (("size", str(number * 1000)), ("sha-1", "407B386BDE"))
    return filemq.Cheezburger(number, 1, f"/photos/a{number}.jpg", number << 12, headers, b"x" * 256)


def hello(number: int) -> Message:
    """A greeting with groups and headers."""
    headers = (("X-HELLO", "World"), ("X-NUMBER", str(number)))
    return zre.Hello(
        version=2, sequence=1, endpoint=f"tcp://192.168.55.{number % 250}:5670", groups=("CHAT", "LOCAL"), status=1,
        name=f"node{number}", headers=headers,
    )  # fmt: skip


def rpc(number: int) -> tuple[Message, Message]:
    """A request that has come over two hops, and its answer."""
    routes, topic = ("f1", f"rank{number}"), f"kvs.{number}"
    return (
        flux.Request(routes, topic, b'{"key":"a"}\0', matchtag=number),
        flux.Response(routes, topic, b'{"value":1}\0', matchtag=number),
    )
