"""What fuzzing begins with: messages of other implementations, messages written by hand, and hostile ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from specwire.generated.layout import Constant, Frame, Keyword, Record, Type, Union
from tests.fuzz.pieces import LONGEST, join
from tests.generated.agreement import layout_of
from tests.generated.hand_vectors import HAND
from tests.generated.vectors import package, recorded
from tests.golden_files import GOLDEN

ROOT = Path(__file__).resolve().parents[2]
LONGEST_FRAME = 300
"""A longer frame is content, which is not looked at: such messages teach nothing."""

Frames = Sequence[bytes]


def messages(name: str) -> list[Frames]:
    """Return messages of a package: the recorded ones, those written by hand, and some that claim too much."""
    vectors = [*recorded(name), *(vector for vector in HAND if vector.package == name)]
    short = dict.fromkeys(
        vector.frames for vector in vectors if all(len(frame) <= LONGEST_FRAME for frame in vector.frames)
    )
    return [*short, *(hostile for frames in list(short)[:6] for hostile in claims(frames))]


def claims(frames: Frames) -> Iterator[Frames]:
    """Yield what claims more than there is: all octets of counts and lengths set, frames doubled or gone."""
    for index, frame in enumerate(frames):
        for at in (3, len(frame) // 2, max(0, len(frame) - 4)):
            yield (*frames[:index], frame[:at] + b"\xff" * 8, *frames[index + 1 :])
    yield (*frames, b"")
    yield tuple(frames) * 2
    yield frames[:-1]


def codec_seeds(name: str) -> Iterator[bytes]:
    """Yield inputs of the target of a decoder."""
    yield b""
    for frames in messages(name):
        yield join(frames)


def column_seeds(name: str) -> Iterator[bytes]:
    """Yield inputs of the target of a column decoder: each message alone, and all of them in rows of seven."""
    rows = [row for row in map(join, messages(name)) if len(row) <= LONGEST]
    yield from (join([row]) for row in rows)
    yield from (join(rows[at : at + 7]) for at in range(0, len(rows), 7))


def broker_seeds(name: str) -> Iterator[bytes]:
    """Yield inputs of the target of a broker: each message by each of five senders, and all of them in rows of nine.

    Clients speak Flux v1 to every broker.
    """
    rows = [
        join((bytes((number,)), *frames))
        for package_, numbers in ((name, range(3)), ("flux", range(3, 5)))
        for number in numbers
        for frames in messages(package_)
    ]
    kept = [row for row in rows if len(row) <= 200]
    yield from (join([row]) for row in kept)
    yield from (join(kept[at::97][:9]) for at in range(97))


def stream_seeds(name: str) -> Iterator[bytes]:
    """Yield inputs of the target of a stream: recorded messages alone and behind each other, and long claims."""
    framed = [vector.framed for vector in recorded(name) if 0 < len(vector.framed) <= LONGEST_FRAME]
    for octets in dict.fromkeys(framed):
        yield b"\x05" + octets
        yield b"\x01" + octets[:6] + b"\xff" * 8
    yield b"\x40" + b"".join(framed[:6])


def words(name: str) -> Iterator[bytes]:
    """Yield the constants of a package's messages, for libFuzzer to put in."""
    for message in layout_of(package(name)).messages:
        for part in message.parts:
            for field in part.fields if isinstance(part, Frame) else (part.field,):
                yield from _constants(field.type)


def _constants(type: Type) -> Iterator[bytes]:
    match type:
        case Constant(octets=octets):
            yield octets
        case Keyword(options=options):
            yield from (option.encode() for option in options)
        case Record(fields=fields):
            for field in fields:
                yield from _constants(field.type)
        case Union(options=options):
            for option in options:
                yield from _constants(option)


def files(*patterns: str, longest: int) -> Iterator[bytes]:
    """Yield the files of the repository that fit `patterns`, cut to `longest` octets."""
    for pattern in patterns:
        for path in sorted(ROOT.glob(pattern)):
            yield path.read_bytes()[:longest]


GRAMMARS = ("grammars/*/grammar.abnf", f"{GOLDEN.relative_to(ROOT)}/abnf/*/input.abnf")
DOCUMENTS = (f"{GOLDEN.relative_to(ROOT)}/import/*/document.*",)
PROFILES = ("grammars/*/profile.toml", f"{GOLDEN.relative_to(ROOT)}/*/*/profile.toml")
