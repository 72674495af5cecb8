"""A user through three editions of a protocol: the document changes, and one command follows it.

At each step a server of the new edition runs, and a client that was not updated shows that the report
was right. The captures of all editions become one table.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import zmq
from pyspark.sql import SparkSession

from specwire.generated.errors import DecodeError
from specwire.runtime.capture import Tap
from specwire.runtime.packages import add_packages, load_package
from tests.spark_session import Command

pytestmark = pytest.mark.spark

DOCUMENT = """\
# Ticker Protocol

This is version 1 of TICKER.

```
ticker    = *( C:subscribe *S:quote )
subscribe = %x01 symbol
quote     = %x02 symbol price
symbol    = OCTET *VCHAR
price     = 8OCTET         ; integer
```
"""
SECOND = (
    DOCUMENT.replace("version 1", "version 2")
    .replace("*S:quote )", "*( S:quote / S:halt ) )")
    .replace("symbol    =", "halt      = %x03 symbol\nsymbol    =")
)
"""A server says when it stops trading a symbol."""
THIRD = SECOND.replace("version 2", "version 3").replace("price\n", "price volume\n", 1).replace(
    "price     =", "volume    = 4OCTET         ; integer\nprice     ="
)  # fmt: skip
"""A quote has a volume."""
ROLES = """
# The document does not say this.
[roles.C]
name = "client"
socket = "DEALER"

[roles.S]
name = "server"
socket = "ROUTER"
"""
TIMEOUT_MS = 10_000

Answer = Callable[[ModuleType, str], list[Any]]


def quotes(edition: ModuleType, symbol: str) -> list[Any]:
    """What a server of any edition says about a symbol."""
    if "volume" in edition.Quote.__annotations__:
        return [edition.Quote(symbol=symbol, price=1300, volume=500)]
    return [edition.Quote(symbol=symbol, price=1250)]


def halts(edition: ModuleType, symbol: str) -> list[Any]:
    """A quote, and then the news of the second edition."""
    return [*quotes(edition, symbol), edition.Halt(symbol=symbol)]


@contextmanager
def serving(edition: ModuleType, answer: Answer, capture: Path) -> Iterator[str]:
    """Run a server of one edition with a tap; yield its endpoint."""
    context = zmq.Context()
    socket = context.socket(zmq.ROUTER)
    socket.linger = 0
    port = socket.bind_to_random_port("tcp://127.0.0.1")
    stopped = threading.Event()

    def serve() -> None:
        with Tap.open(capture, protocol="ticker", name="server", edition=edition.EDITION) as tap:
            while not stopped.is_set():
                if not socket.poll(50):
                    continue
                peer, *frames = socket.recv_multipart()
                said = {"peer": peer.hex(), "conversation": edition.EDITION}
                tap.record(sender="C", frames=frames, **said)
                for message in answer(edition, edition.decode(frames).symbol):
                    tap.record(sender="S", frames=message.encode(), **said)
                    socket.send_multipart([peer, *message.encode()])

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield f"tcp://127.0.0.1:{port}"
    finally:
        stopped.set()
        thread.join(TIMEOUT_MS / 1000)
        context.destroy(linger=0)


def ask(endpoint: str, edition: ModuleType, answers: int) -> list[Any]:
    """Subscribe with a client of one edition; return its messages, and its errors in their places."""
    with zmq.Context() as context, context.socket(zmq.DEALER) as socket:
        socket.linger, socket.rcvtimeo = 0, TIMEOUT_MS
        socket.connect(endpoint)
        socket.send_multipart(edition.Subscribe(symbol="ACME").encode())
        return [read(edition, socket.recv_multipart()) for _ in range(answers)]


def read(edition: ModuleType, frames: Sequence[bytes]) -> Any:
    """Decode a message; an error is a result."""
    try:
        return edition.decode(frames)
    except DecodeError as error:
        return error


def load(folder: str, edition: str) -> ModuleType:
    """Add a package and return it."""
    add_packages(Path(folder))
    return load_package(f"ticker@{edition}")


def test_three_editions(
    spark: SparkSession, command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Import, two updates, three captures, one table."""
    monkeypatch.chdir(tmp_path)
    captures, document = tmp_path / "captures", Path("ticker.md")
    document.write_text(DOCUMENT, encoding="utf-8")
    assert command("import", "ticker.md", "--protocol", "ticker", "--grammars", "grammars").status == 0
    with Path("grammars/ticker/profile.toml").open("a", encoding="utf-8") as profile:
        profile.write(ROLES)
    assert command("generate", "ticker", "--out", "wire1").status == 0
    first = load("wire1", "Ticker v1")
    with serving(first, quotes, captures) as endpoint:
        assert ask(endpoint, first, 1) == [first.Quote(symbol="ACME", price=1250)]

    document.write_text(SECOND, encoding="utf-8")
    told = command("update", "ticker.md", "--out", "wire2", "--markdown")
    assert told.status == 1 and "Ticker v1 to Ticker v2 (conditional)" in told.out
    assert "- The old client reads only under conditions `halt` of the new server:" in told.out
    assert "The old server" not in told.out
    second = load("wire2", "Ticker v2")
    with serving(second, halts, captures) as endpoint:
        quote, halt = ask(endpoint, second, 2)
        assert (quote.price, halt) == (1250, second.Halt(symbol="ACME"))
        quote, halt = ask(endpoint, first, 2)
        assert quote == first.Quote(symbol="ACME", price=1250) and isinstance(halt, DecodeError)

    document.write_text(THIRD, encoding="utf-8")
    told = command("update", "ticker.md", "--out", "wire3", "--markdown")
    assert told.status == 1 and "Ticker v2 to Ticker v3 (breaking)" in told.out
    assert "- The old client cannot read `quote` of the new server:" in told.out
    assert "- `Quote`: needs a new column: the column volume, null in old rows." in told.out
    third = load("wire3", "Ticker v3")
    with serving(third, quotes, captures) as endpoint:
        assert ask(endpoint, third, 1) == [third.Quote(symbol="ACME", price=1300, volume=500)]
        (error,) = ask(endpoint, second, 1)
        assert isinstance(error, DecodeError)
    assert ROLES in Path("grammars/ticker/profile.toml").read_text("utf-8")

    ran = command("pipeline", "run", "--capture", str(captures), "--out", "tables", "--layers", "typed")
    assert ran.status == 0, ran.err
    table = spark.read.parquet(str(tmp_path / "tables/typed/ticker/Quote"))
    rows = table.select("edition", "price", "volume").orderBy("edition", "price").collect()
    assert [(row.edition, int(row.price), row.volume) for row in rows] == [
        ("Ticker v1", 1250, None),
        ("Ticker v2", 1250, None),
        ("Ticker v2", 1250, None),
        ("Ticker v3", 1300, 500),
        ("Ticker v3", 1300, 500),
    ]
