"""Time grows no faster than what was sent: counted in executed opcodes of Python, so without a clock.

For sizes n, 2n and 4n the second step may cost twice the first, and not more: what grows with a square would cost
four times. Every loop over what a peer sent is Python; what one opcode does in C (a slice, a search, a decoded
text) is over at most the octets of one value, once.

The compiled decoders cannot be counted so. They have the loops of the pure ones, from the same layout, and end in
the same slow path.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from specwire.generated import flux, zmtp
from specwire.generated.errors import DecodeError
from specwire.generator.abnf.dialect import Dialect
from specwire.generator.abnf.parser import parse_grammar
from specwire.generator.diagnostics import Diagnostics, Source
from tests.generated.builds import package
from tests.generated.claims import GROWING

SLACK = 1.05
"""Of what linear growth would be: the growth of a list here and there."""
START = 2_000
"""Opcodes that do not depend on the size."""


def opcodes(act: Callable[[], object]) -> int:
    """Return how many opcodes of Python `act` executes."""
    count = 0

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal count
        if event == "call":
            frame.f_trace_opcodes, frame.f_trace_lines = True, False
        elif event == "opcode":
            count += 1
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        act()
    finally:
        sys.settrace(before)
    return count


def assert_linear(act: Callable[[int], Callable[[], object]], size: int) -> None:
    """Check that `act` of twice the size costs twice as much; it is made before it is counted."""
    act(size)()  # what is made once is made now
    once, twice, four = (opcodes(act(size * factor)) for factor in (1, 2, 4))
    assert four - twice <= SLACK * 2 * (twice - once) + START, (once, twice, four)


def test_the_count_finds_a_square() -> None:
    """A list that is searched from its start each time is found out, a list that is walked over is not."""

    def square(size: int) -> Callable[[], object]:
        return lambda: [first for first in range(size) for second in range(first) if second == size]

    with pytest.raises(AssertionError):
        assert_linear(square, 100)
    assert_linear(lambda size: lambda: [first for first in range(size)], 100)


def refused(decode: Callable[..., object], *arguments: Any, **options: Any) -> None:
    try:
        decode(*arguments, **options)
    except DecodeError:
        return


@pytest.mark.parametrize("strict", [False, True], ids=["", "strict"])
@pytest.mark.parametrize("what", GROWING)
def test_decoding(what: str, strict: bool) -> None:
    """The fast path, the slow one behind it where it is refused, and the letter."""
    shape = GROWING[what]
    decode = package(shape.package, "pure").decode

    def act(size: int) -> Callable[[], object]:
        frames = shape.frames(size)
        return lambda: refused(decode, frames, strict=strict)

    assert_linear(act, 60)


@pytest.mark.parametrize("piece", [1, 7, 1_000_000], ids=["octet by octet", "sevens", "whole"])
@pytest.mark.parametrize("what", ["messages", "one long message", "parts", "commands"])
def test_streams(what: str, piece: int) -> None:
    def octets(size: int) -> bytes:
        header = b"\x8e\x01\x01\x08" + bytes(16)
        return {
            "messages": flux.frame(flux.Request(topic="a")) * size,
            "one long message": flux.frame(flux.Request(topic="a" * 10 * size)),
            "parts": flux.stream.FRAMING.frame([*[b"a"] * 5 * size, b"", header]),
            "commands": zmtp.frame(zmtp.Ready(metadata=())) * size,
        }[what]

    def act(size: int) -> Callable[[], object]:
        stream, decoder = octets(size), (zmtp if what == "commands" else flux).StreamDecoder()
        pieces = [stream[at : at + piece] for at in range(0, len(stream), piece)]
        return lambda: [decoder.feed(one) for one in pieces]

    assert_linear(act, 30)


ABNF: dict[str, Callable[[int], str]] = {
    "rules": lambda n: "".join(f"r{number} = %x01 r{number + 1}\n" for number in range(n)),
    "alternatives": lambda n: "r = %x01" + " / %x02" * n + "\n",
    "alternatives in lines of their own": lambda n: "r = %x01\n" + "  / %x02\n" * n,
    "groups in groups": lambda n: "r = " + "(" * n + "%x01" + ")" * n + "\n",
    "groups that nothing closes": lambda n: "r = " + "(" * n + "\n",
    "a long number": lambda n: "r = %x" + "1" * n + "\n",
    "a long range of values": lambda n: "r = %x01" + ".01" * n + "\n",
    "texts": lambda n: 'r = "a"' + ' "b"' * n + "\n",
    "a text that nothing ends": lambda n: 'r = "' + "a" * n + "\n",
    "comments": lambda n: "r = %x01 ; a\n" + "; b\n" * n,
    "empty lines": lambda n: "r = %x01\n" + "\n" * n,
    "rules with a fault": lambda n: "r = (%x01\n" * n,
    "the same rule": lambda n: "r = %x01\n" * n,
    "lines that are no rule": lambda n: "r = %x01\n" + "once upon a time\n" * n,
    "octets that are not UTF-8": lambda n: "r = %x01 ; " + "\udcff" * n + "\n",
    "repeats": lambda n: "r = " + "1*2" * n + "OCTET\n",
}


@pytest.mark.parametrize("dialect", ["rfc5234", "zeromq"])
@pytest.mark.parametrize("what", ABNF)
def test_abnf(what: str, dialect: Dialect) -> None:
    def act(size: int) -> Callable[[], object]:
        source = Source("g", ABNF[what](size))
        return lambda: parse_grammar(source, dialect=dialect, diagnostics=Diagnostics())

    assert_linear(act, 20)


@pytest.mark.parametrize("depth", [100, 1_000, 40_000])
@pytest.mark.parametrize("brackets", ["()", "[]"])
def test_depth_is_refused_in_words(brackets: str, depth: int) -> None:
    diagnostics = Diagnostics()
    text = f"r = {brackets[0] * depth}%x01{brackets[1] * depth}\n"
    parse_grammar(Source("g", text), dialect="rfc5234", diagnostics=diagnostics)
    assert [found.code for found in diagnostics] == ["E138"]
