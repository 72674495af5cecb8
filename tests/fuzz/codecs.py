"""What must hold for any frames at all, in every build of a package.

`Finding` is raised for what must not be; any other exception that comes out of a check is a finding as well.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

from specwire.generated.errors import CodecError, DecodeError
from specwire.generated.messages import Message
from tests.fuzz.pieces import split
from tests.generated.agreement import assert_explained, layout_of
from tests.generated.vectors import package

LONGEST_SENTENCE = 500


class Finding(AssertionError):
    """A promise of the codecs that does not hold."""


def demand(holds: bool, promise: str) -> None:
    """Raise a `Finding` unless `holds`."""
    if not holds:
        raise Finding(promise)


def codec_check(name: str) -> Callable[[bytes], None]:
    """Return the check of a package's decoder in all of its builds; its input is pieces, a frame each."""
    module = package(name)
    builds = (module.codec, module) if module.ACCELERATED else (module.codec,)

    def check(octets: bytes) -> None:
        frames = split(octets)
        first, *others = [check_frames(module, build, frames) for build in builds]
        for other in others:
            agree(first, other)

    return check


def check_frames(module: ModuleType, build: Any, frames: list[bytes]) -> tuple[Message | DecodeError, ...]:
    """Check one build's reading of `frames`; return what it says by default and under ``strict``.

    `module` has the layout and the Construct declarations of the package.
    """
    usual, letter = (outcome(build.decode, frames, strict=strict) for strict in (False, True))
    for said in (usual, letter):
        if isinstance(said, DecodeError):
            check_error(module, frames, said)
    if isinstance(letter, Message):
        demand(usual == letter, "what strict accepts is the same message without it")
        demand(build.decode(letter.encode(strict=True), strict=True) == letter, "strict round trip")
    if isinstance(usual, Message):
        check_message(build, usual)
    check_ways(build, frames, usual)
    return usual, letter


def check_ways(build: Any, frames: list[bytes], usual: Message | DecodeError) -> None:
    """Check that neither what holds the octets, nor ``copy``, nor limits that suffice change what is said."""
    octets = sum(map(len, frames))
    ways: tuple[tuple[Any, dict[str, Any]], ...] = (
        (tuple(map(memoryview, frames)), {}),
        (frames, {"copy": False}),
        (list(map(bytearray, frames)), {"copy": False}),
        (frames, {"max_frames": len(frames), "max_octets": octets}),
    )
    for given, options in ways:
        demand(same(usual, outcome(build.decode, given, **options)), f"the same by {options} and {given!r}")
    for limit in ({"max_frames": len(frames) - 1}, {"max_octets": octets - 1}):
        over = outcome(build.decode, frames, **limit)
        demand(min(limit.values()) < 0 or over.kind == "limit", f"{limit} is not passed")


def outcome(decode: Callable[..., Any], frames: Any, **options: Any) -> Any:
    """Return the message, or the refusal; nothing else may come out of a decoder."""
    try:
        return decode(frames, **options)
    except DecodeError as error:
        return error


def check_error(module: ModuleType, frames: list[bytes], error: DecodeError) -> None:
    """Check that a refusal points into the frames and is one sentence."""
    assert_explained(module, frames, error)
    demand(len(str(error)) < LONGEST_SENTENCE, "a sentence is short")
    demand(str(error).isprintable(), "a sentence can be printed")
    demand(error.protocol == layout_of(module).protocol, "the error names the package")


def check_message(build: Any, message: Message) -> None:
    """Check that a message can be written, read again, hashed and shown."""
    again = message.encode()
    demand(all(type(frame) is bytes for frame in again), "encoding gives bytes")
    twin = build.decode(again)
    demand(twin == message and hash(twin) == hash(message), "round trip")
    demand(repr(twin) == repr(message) and twin.to_dict() == message.to_dict(), "round trip, shown")
    demand(twin.encode() == again, "what was encoded encodes to the same octets")


def agree(one: tuple[Message | DecodeError, ...], other: tuple[Message | DecodeError, ...]) -> None:
    """Check that two builds say the same."""
    for first, second in zip(one, other, strict=True):
        demand(same(first, second), f"the builds agree: {first!r} and {second!r}")
        demand(isinstance(first, DecodeError) or repr(first) == repr(second), "the builds show the same")


def same(one: Message | CodecError, other: Message | CodecError) -> bool:
    """Whether both are equal messages or errors that say the same."""
    if isinstance(one, CodecError) or isinstance(other, CodecError):
        return (
            isinstance(one, CodecError)
            and isinstance(other, CodecError)
            and one.attributes() == other.attributes()
        )
    return one == other
