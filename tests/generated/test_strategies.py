"""The strategies of packages: all that they draw can be sent, all that can be sent is drawn, and it shrinks to little."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from functools import cache
from random import Random
from types import ModuleType
from typing import Any

import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

from specwire.generated import cmb1_json, filemq, flux, libfilemq, norfab, zmtp, zre
from specwire.generated.errors import DecodeError, EncodeError
from tests.examples import examples
from tests.generated import strategies
from tests.generated.builds import package
from tests.generated.vectors import PACKAGES

FEW = settings(max_examples=examples(40), deadline=None)


@pytest.mark.parametrize("name", PACKAGES)
@FEW
@given(data=st.data())
def test_what_is_drawn_can_be_sent(name: str, build: str, data: st.DataObject) -> None:
    module = package(name, build)
    message = data.draw(strategies.messages(module))
    assert type(message) is getattr(module, type(message).__name__)
    assert module.decode(message.encode()) == message


@pytest.mark.parametrize("name", PACKAGES)
@FEW
@given(data=st.data())
def test_the_letter_is_kept(name: str, build: str, data: st.DataObject) -> None:
    module = package(name, build)
    message = data.draw(strategies.messages(module, strict=True))
    assert module.decode(message.encode(strict=True), strict=True) == message
    assert module.decode(data.draw(strategies.frames(module, strict=True)), strict=True)


@pytest.mark.parametrize("name", PACKAGES)
@FEW
@given(data=st.data())
def test_frames_with_something_wrong(name: str, build: str, data: st.DataObject) -> None:
    module = package(name, build)
    frames, mutated, malformed = frames_and_their_faults(module)
    assert data.draw(mutated) != data.draw(frames)
    with pytest.raises(DecodeError):
        module.decode(data.draw(malformed))


@cache
def frames_and_their_faults(module: ModuleType) -> tuple[st.SearchStrategy[list[bytes]], ...]:
    """Frames, and the same frames mutated and malformed: what is drawn for one is so for all three."""
    frames = st.shared(strategies.frames(module))
    return frames, module.strategies.mutated_frames(frames), module.strategies.malformed_frames(frames)


def size(text: str) -> int:
    return len(text.encode())


def widest(text: str) -> int:
    return max(size(letter) for letter in text)


REACHED: list[tuple[Any, Callable[[Any], bool]]] = [
    *((flux.strategies.messages(), lambda m, name=name: type(m).__name__ == name) for name in flux.MESSAGES),
    (flux.strategies.request(), lambda m: m.topic is None and m.payload is not None and m.routes is None),
    (flux.strategies.request(), lambda m: m.topic == "" and m.payload == b"" and m.routes == ()),
    (flux.strategies.request(), lambda m: m.flags == 0xF4 and m.nodeid == flux.NODEID_ANY),
    (filemq.strategies.nom(), lambda m: m.credit == 2**64 - 1),
    (filemq.strategies.srsly(), lambda m: len(m.reason) == 255),
    (filemq.strategies.srsly(), lambda m: size(m.reason) == 255 and widest(m.reason) == 2),
    (filemq.strategies.srsly(), lambda m: size(m.reason) == 255 and widest(m.reason) == 3),
    (filemq.strategies.srsly(), lambda m: size(m.reason) == 255 and widest(m.reason) == 4),
    (filemq.strategies.srsly(), lambda m: "\0" in m.reason),
    (filemq.strategies.cheezburger(), lambda m: m.operation == 2 and len(m.headers) == 255),
    (filemq.strategies.cheezburger(), lambda m: any(size(n) + size(v) == 254 for n, v in m.headers)),
    (filemq.strategies.cheezburger(), lambda m: any("=" in value for _, value in m.headers)),
    (filemq.strategies.icanhaz(), lambda m: any("=" in name for name, _ in m.cache)),
    (libfilemq.strategies.icanhaz(), lambda m: len({name for name, _ in m.options}) < len(m.options)),
    (cmb1_json.strategies.event(), lambda m: m.json is not None),
    (cmb1_json.strategies.event(), lambda m: m.payload is not None),
    (norfab.strategies.disconnect(), lambda m: m.service is not None and m.body is None),
    (norfab.strategies.disconnect(), lambda m: m.service is None),
    (zre.strategies.whisper(), lambda m: len(m.content) > 1 and b"" in m.content),
    (zmtp.strategies.message_last(), lambda m: len(m.message_body) == 255),
    (zmtp.strategies.message_last(), lambda m: len(m.message_body) == 256),
    (zmtp.strategies.ping(), lambda m: len(m.ping_context) == 16),
    (zmtp.strategies.greeting(), lambda m: size(m.mechanism) == 20),
    (zmtp.strategies.ready(strict=True), lambda m: any(not value for _, value in m.metadata)),
    (zmtp.strategies.join(strict=True), lambda m: not m.group.isascii()),
    (filemq.strategies.mutated_frames(), lambda frames: not frames),
    (filemq.strategies.mutated_frames(), lambda frames: len(frames) > 2),
]


@pytest.mark.parametrize(("strategy", "condition"), REACHED, ids=map(str, range(len(REACHED))))
def test_what_can_be_sent_is_drawn(strategy: Any, condition: Callable[[Any], bool]) -> None:
    tries = settings(max_examples=5000, database=None, phases=[Phase.generate])
    find(strategy, condition, settings=tries, random=Random(7))


NOTHING = flux.Request(routes=None, userid=0, nodeid=0, matchtag=0)
SMALL: list[tuple[Any, Callable[[Any], bool], object]] = [
    (flux.strategies.request(), lambda m: True, NOTHING),
    (flux.strategies.request(), lambda m: bool(m.payload), NOTHING.replace(payload=b"\0")),
    (flux.strategies.request(), lambda m: m.userid == 2**32 - 1, NOTHING.replace(userid=2**32 - 1)),
    (
        filemq.strategies.cheezburger(),
        lambda m: len(m.headers) > 1,
        filemq.Cheezburger(0, 1, "", 0, (("", ""), ("", "")), b""),
    ),
    (filemq.strategies.srsly(), lambda m: "\u00e9" in m.reason, filemq.Srsly("\u00e9")),
    (
        norfab.strategies.disconnect(),
        lambda m: m.body is not None,
        norfab.Disconnect(header="NFPB01", service="", body=b""),
    ),
    (filemq.strategies.malformed_frames(), bool, [b""]),
]


@pytest.mark.parametrize(("strategy", "condition", "least"), SMALL, ids=map(str, range(len(SMALL))))
def test_what_fails_shrinks(strategy: Any, condition: Callable[[Any], bool], least: object) -> None:
    found = find(strategy, condition, settings=settings(max_examples=2000, database=None), random=Random(7))
    assert found == least


@FEW
@given(data=st.data())
def test_given_fields_stand(data: st.DataObject) -> None:
    """A value, None, a strategy; what is drawn beside them makes room."""
    request = flux.strategies.request(topic="kvs.get", payload=None, matchtag=st.integers(1, 9))
    drawn = data.draw(request)
    assert (drawn.topic, drawn.payload) == ("kvs.get", None) and 1 <= drawn.matchtag <= 9
    event = data.draw(cmb1_json.strategies.event(payload=b"x"))
    assert (event.payload, event.json) == (b"x", None) and event.encode()
    last = data.draw(norfab.strategies.disconnect(body=b"x"))
    assert last.service is not None and last.encode()
    none = data.draw(norfab.strategies.disconnect(service=None))
    assert none.body is None and none.encode()
    named = data.draw(zmtp.strategies.command(command_name="HELLO"))
    assert named.encode()[0].find(b"HELLO") > 0


@FEW
@given(data=st.data())
def test_given_fields_need_not_fit(data: st.DataObject) -> None:
    """Whoever gives a value that cannot be sent wants to see what comes of it."""
    unfit = [
        flux.strategies.request(topic="a\0"),
        filemq.strategies.srsly(reason="x" * 256),
        cmb1_json.strategies.event(payload=b"", json="{}"),
        norfab.strategies.disconnect(service=None, body=b""),
        zmtp.strategies.command(command_name="READY"),
    ]
    with pytest.raises(EncodeError):
        data.draw(st.one_of(unfit)).encode()


@pytest.mark.parametrize(
    ("sender", "classes"),
    [
        ("C", {"Ohai", "Icanhaz", "Nom", "Hugz", "HugzOk", "Kthxbai"}),
        ("S", {"OhaiOk", "IcanhazOk", "Cheezburger", "Hugz", "HugzOk", "Kthxbai", "Srsly", "Rtfm", "Wat"}),
    ],
)
def test_what_a_role_sends(sender: Any, classes: set[str]) -> None:
    seen: set[str] = set()

    @settings(max_examples=examples(300), deadline=None, database=None, derandomize=True)
    @given(filemq.strategies.messages(sender=sender))
    def collect(message: object) -> None:
        seen.add(type(message).__name__)

    collect()
    assert seen == classes


def run(program: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", program]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


def test_only_the_strategies_need_hypothesis() -> None:
    """Without it a package works, and its strategies say what to install."""
    ended = run(
        "import sys; sys.modules['hypothesis'] = None\n"
        "from specwire.generated import zre; print(zre.decode(zre.Ping(sequence=1).encode()).sequence)\n"
        "zre.strategies"
    )
    assert ended.stdout == "1\n", ended.stderr
    assert "strategies of generated packages need hypothesis: pip install 'specwire[testing]'" in ended.stderr


def test_help_reads_well() -> None:
    ended = run("from specwire.generated import filemq; help(filemq.strategies.cheezburger)")
    assert "Draw CHEEZBURGER messages. The server sends a part of a file" in ended.stdout
    assert "operation: 'Given[int]' = Ellipsis" in ended.stdout
