"""Construct classes for messages that Construct itself lacks.

A message of several ZeroMQ frames is no single octet string. Construct reads one stream, so the
frames are concatenated, each preceded by its length in four octets.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from io import BytesIO
from typing import TYPE_CHECKING, Any

import construct as cs

from specwire.generated.construct_runs import flat
from specwire.generated.construct_values import ToEnd

if TYPE_CHECKING:
    # Generic in the stubs only: at run time Construct's classes accept no subscript.
    _Construct = cs.Construct[Any, Any]
else:
    _Construct = cs.Construct


def frame(inner: cs.Construct[Any, Any]) -> cs.Construct[Any, Any]:
    """Return the declaration of one frame that holds `inner` and nothing after it."""
    return cs.Prefixed(cs.Int32ub, cs.FocusedSeq("inner", "inner" / inner, cs.Terminated))


def message(*parts: cs.Construct[Any, Any]) -> cs.Struct:
    """Return the declaration of a message: its parts, and no frame after them."""
    return cs.Struct(*parts, cs.Terminated)


class Stack(_Construct):
    """Frames up to an empty one, each parsed as `element`; the value is a list."""

    def __init__(self, element: cs.Construct[Any, Any]) -> None:
        super().__init__()
        self.element = element
        self.frames = cs.RepeatUntil(
            lambda item, items, this: not item, cs.Prefixed(cs.Int32ub, cs.GreedyBytes)
        )

    def _parse(self, stream: Any, context: Any, path: str) -> list[Any]:
        frames = self.frames._parsereport(stream, context, path)
        values = [self.element.parse(item) for item in frames[:-1]]
        if not all(values):
            raise cs.ValidationError("a frame of the stack has no content", path=path)
        return values

    def _build(self, obj: Any, stream: Any, context: Any, path: str) -> Any:
        octets = [self.element.build(item) for item in obj]
        if b"" in octets:
            raise cs.ValidationError("an empty frame ends the stack", path=path)
        self.frames._build([*octets, b""], stream, context, path)
        return obj


class Trailing(_Construct):
    """Optional part at the end: parsed if octets are left, built if there is a value."""

    def __init__(self, name: str, inner: cs.Construct[Any, Any]) -> None:
        super().__init__()
        self.part = name
        self.inner = inner
        self.flagbuildnone = True

    def _parse(self, stream: Any, context: Any, path: str) -> Any:
        return None if cs.stream_iseof(stream) else self.inner._parsereport(stream, context, path)

    def _build(self, obj: Any, stream: Any, context: Any, path: str) -> Any:
        return None if obj is None else self.inner._build(obj, stream, context, path)


class Unlike(_Construct):
    """Empty element that fails if the frames that follow match one of `shapes`, those of other messages.

    A shape holds regular expressions for the first frames, and the number of frames (None: any
    number).
    """

    def __init__(self, *shapes: tuple[tuple[bytes, ...], int, int | None]) -> None:
        super().__init__()
        self.shapes = shapes
        self.flagbuildnone = True

    def _parse(self, stream: Any, context: Any, path: str) -> None:
        start = cs.stream_tell(stream, path)
        frames = ToEnd(cs.Prefixed(cs.Int32ub, cs.GreedyBytes))._parsereport(stream, context, path)
        stream.seek(start)
        for heads, least, most in self.shapes:
            enough = least <= len(frames) and (most is None or len(frames) <= most)
            if enough and all(
                re.match(head, octets, re.DOTALL) for head, octets in zip(heads, frames, strict=False)
            ):
                raise cs.ValidationError("another message", path=path)

    def _build(self, obj: Any, stream: Any, context: Any, path: str) -> Any:
        return None


def parse_frames(
    messages: Mapping[str, cs.Struct], flags: tuple[int, int] | None, frames: Sequence[bytes]
) -> tuple[str, dict[str, Any]]:
    """Return the class name and values of the first message whose declaration parses `frames`.

    Raises:
        construct.ConstructError: no declaration parses them; the error is that of the last one
        tried.
    """
    stream = b"".join(len(item).to_bytes(4, "big") + item for item in frames)
    announced = _announced(flags, frames)
    refusal = cs.ConstructError("there are no messages")
    for name, declaration in messages.items():
        try:
            return name, flat(declaration.parse(stream, flags=announced))
        except cs.ConstructError as error:
            refusal = error
    raise refusal


def build_frames(declaration: cs.Struct, values: Mapping[str, Any]) -> list[bytes]:
    """Return the frames that `declaration` builds from `values`, as returned by `parse_frames`."""
    nested = dict(values)
    for part in declaration.subcons:
        # A frame with several fields has its own name; its values are stored with the others.
        nested.setdefault(part.name or "", values)
    stream = declaration.build(nested, flags=values.get("flags", 0))
    reader, frames = BytesIO(stream), []
    while size := reader.read(4):
        frames.append(reader.read(int.from_bytes(size, "big")))
    return frames


def _announced(flags: tuple[int, int] | None, frames: Sequence[bytes]) -> int:
    """Return the flags octet, which follows the parts that it announces; 0 if there is none."""
    if flags is None or not frames or len(frames[flags[0]]) <= flags[1]:
        return 0
    return frames[flags[0]][flags[1]]
