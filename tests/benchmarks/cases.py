"""The messages that the benchmarks of the codecs measure, and what is wanted of each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

DIGEST = "407B386BDED4EEB62D59EB8069E0111906DFCC50"
UUID = "9af3256275334e2fbef389b82dabfb0d"


@dataclass(frozen=True)
class Goals:
    """How many times as fast as interpreted Construct a build is to be; None where nothing is promised."""

    decode: float | None = None
    encode: float | None = None


@dataclass(frozen=True)
class Case:
    """A message that a busy peer sees often.

    Attributes:
        package: name of the package.
        make: makes the message by the classes of a build.
        pure, native: the goals of the two builds.
        kaitai: how many times as fast as a Kaitai-style class the pure build is to decode.
    """

    package: str
    make: Callable[[Any], Any]
    pure: Goals = Goals()
    native: Goals = Goals()
    kaitai: float | None = None

    def message(self, build: ModuleType) -> Any:
        """Return the message in a build: a package or its codec module."""
        return self.make(build)


_CACHE = tuple((f"folder/file-{number:03}.txt", DIGEST) for number in range(20))
_OPTIONS = (("RESYNC", "1"), ("DEPTH", "all"), ("RESUME", "no"))
_HEADERS = (("size", "1048576"), ("sha-1", DIGEST))
_BODY = b'{"task": "add", "kwargs": {"a": 1, "b": 2}, "args": [], "timeout": 600}'
_PROPERTIES = (("Socket-Type", b"DEALER"), ("Identity", b"peer-1"))
_BAND = Goals(25, 32)
"""What the messages are held to that have no goals of their own: those of CHEEZBURGER."""

CASES: dict[str, Case] = {
    "flux request, header alone": Case(
        "flux", lambda p: p.Request(routes=None, nodeid=0, matchtag=7), Goals(55, 95), Goals(350, 300), 10
    ),
    "flux request": Case(
        "flux",
        lambda p: p.Request(topic="kvs.get", payload=b'{"key":"a"}\0', matchtag=7),
        Goals(36, 52),
        Goals(170, 110),
    ),
    "filemq NOM": Case("filemq", lambda p: p.Nom(credit=1 << 40), _BAND),
    "filemq CHEEZBURGER": Case(
        "filemq",
        lambda p: p.Cheezburger(5, 1, "/photos/a.jpg", 4096, _HEADERS, bytes(1024)),
        Goals(25, 32),
        Goals(90, 90),
        5,
    ),
    "filemq ICANHAZ, 3 options, 20 cached": Case(
        "filemq", lambda p: p.Icanhaz("/photos", _OPTIONS, _CACHE), Goals(18, 13), Goals(25)
    ),
    "libfilemq CHEEZBURGER": Case(
        "libfilemq",
        lambda p: p.Cheezburger(5, 1, "/photos/a.jpg", 4096, 0, _HEADERS, bytes(1024)),
        _BAND,
    ),
    "norfab POST": Case("norfab", lambda p: p.PostClient("service", "all", UUID, _BODY), _BAND),
    "norfab_ascii RESPONSE": Case(
        "norfab_ascii",
        lambda p: p.ResponseClient(service="service", uuid=UUID, status="200", body=_BODY),
        _BAND,
    ),
    "zre HELLO, 2 groups, 2 headers": Case(
        "zre",
        lambda p: p.Hello(
            sequence=1,
            endpoint="tcp://192.168.1.10:49152",
            groups=("CHAT", "CONTROL"),
            status=1,
            name="peer-1",
            headers=(("X-FILEMQ", "tcp://192.168.1.10:49153"), ("X-VERSION", "1")),
        ),
        _BAND,
    ),
    "zmtp READY, 2 properties": Case("zmtp", lambda p: p.Ready(_PROPERTIES), _BAND),
    "zmtp frame of 1 KiB": Case("zmtp", lambda p: p.MessageLast(bytes(1024)), _BAND),
}
