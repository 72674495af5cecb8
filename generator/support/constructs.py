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
from specwire.generated.construct_values import ToEnd, follows

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
    """Frames up to the frame `delimiter`, each parsed as `element`; the value is a list."""

    def __init__(self, element: cs.Construct[Any, Any], delimiter: bytes = b"") -> None:
        super().__init__()
        self.element = element
        self.delimiter = delimiter
        self.frames = cs.RepeatUntil(
            lambda item, items, this: item == delimiter, cs.Prefixed(cs.Int32ub, cs.GreedyBytes)
        )

    def _parse(self, stream: Any, context: Any, path: str) -> list[Any]:
        frames = self.frames._parsereport(stream, context, path)
        values = [self.element.parse(item) for item in frames[:-1]]
        self._octets(values, path)
        return values

    def _build(self, obj: Any, stream: Any, context: Any, path: str) -> Any:
        self.frames._build([*self._octets(obj, path), self.delimiter], stream, context, path)
        return obj

    def _octets(self, values: Sequence[Any], path: str) -> list[bytes]:
        """Return the frames of values; refuse one that ends the stack."""
        octets = [self.element.build(item) for item in values]
        if self.delimiter in octets:
            raise cs.ValidationError(f"a frame {self.delimiter!r} ends the stack", path=path)
        return octets


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


class _Choice(_Construct):
    """Fields of the enclosing struct that are present or None together, those of `names`.

    With `said`, `names` has one field, which says whether they are present.
    """

    def __init__(self, names: Sequence[str], inner: cs.Construct[Any, Any], *, said: bool = False) -> None:
        super().__init__()
        self.names = names
        self.inner = inner
        self.said = said
        self.flagbuildnone = True

    def _holds(self, stream: Any, context: Any, path: str) -> bool:
        raise NotImplementedError

    def _parse(self, stream: Any, context: Any, path: str) -> Any:
        present = self._holds(stream, context, path)
        values: Any = cs.Container()
        if present:
            values.update(self.inner._parsereport(stream, context, path))
        if self.said:
            values[self.names[0]] = present
        elif not present:
            values.update(dict.fromkeys(self.names))
        return values

    def _build(self, obj: Any, stream: Any, context: Any, path: str) -> Any:
        values = {name: value for name, value in context.items() if not name.startswith("_")}
        if self._is_present(values):
            self.inner._build(values, stream, context, path)
        return obj

    def _is_present(self, values: Mapping[str, Any]) -> bool:
        if self.said:
            return bool(values.get(self.names[0]))
        return any(values.get(name) is not None for name in self.names)


class IfLeft(_Choice):
    """Fields that are present if more than `octets` octets are left."""

    def __init__(self, octets: int, *fields: Any, said: bool = False) -> None:
        super().__init__(*fields, said=said)
        self.octets = octets

    def _holds(self, stream: Any, context: Any, path: str) -> bool:
        start = stream.tell()
        left = len(stream.read())
        stream.seek(start)
        return left > self.octets


class IfNext(_Choice):
    """Fields that are present if the next octets are `octets`; if `folded`, with letters in either case."""

    def __init__(self, octets: bytes, *fields: Any, folded: bool = False, said: bool = False) -> None:
        super().__init__(*fields, said=said)
        self.octets = octets
        self.folded = folded

    def _holds(self, stream: Any, context: Any, path: str) -> bool:
        return follows(stream, self.octets, folded=self.folded)


class IfNumber(_Choice):
    """Fields that are present if an earlier number, masked unless `mask` is 0, is one of `numbers`."""

    def __init__(
        self, field: str, numbers: Sequence[int], *fields: Any, mask: int = 0, said: bool = False
    ) -> None:
        super().__init__(*fields, said=said)
        self.field = field
        self.numbers = numbers
        self.mask = mask

    def _holds(self, stream: Any, context: Any, path: str) -> bool:
        values: dict[str, Any] = {}
        while context is not None and self.field not in values:
            values = flat(context)
            context = context.get("_")
        return self._fits(values.get(self.field))

    def _fits(self, number: int | None) -> bool:
        return number is not None and (number & self.mask if self.mask else number) in self.numbers

    def _is_present(self, values: Mapping[str, Any]) -> bool:
        present = super()._is_present(values)
        # A number that announces these fields follows from them.
        if self.field in values and self._fits(values[self.field]) != present:
            raise cs.ValidationError(f"{self.field} is {values[self.field]}: {', '.join(self.names)}")
        return present


class Unlike(_Construct):
    """Empty element that fails if the frames that follow match one of `shapes`, those of other messages.

    A shape holds regular expressions for the first frames, and the number of frames (None: any
    number). If `folded`, letters match in either case.
    """

    def __init__(self, *shapes: tuple[tuple[bytes, ...], int, int | None], folded: bool = False) -> None:
        super().__init__()
        self.shapes = shapes
        self.flags = re.DOTALL | re.IGNORECASE if folded else re.DOTALL
        self.flagbuildnone = True

    def _parse(self, stream: Any, context: Any, path: str) -> None:
        start = cs.stream_tell(stream, path)
        frames = ToEnd(cs.Prefixed(cs.Int32ub, cs.GreedyBytes))._parsereport(stream, context, path)
        stream.seek(start)
        for heads, least, most in self.shapes:
            enough = least <= len(frames) and (most is None or len(frames) <= most)
            if enough and all(
                re.match(head, octets, self.flags) for head, octets in zip(heads, frames, strict=False)
            ):
                raise cs.ValidationError("another message", path=path)

    def _build(self, obj: Any, stream: Any, context: Any, path: str) -> Any:
        return None


def parse_frames(
    messages: Mapping[str, cs.Struct], flags: tuple[int, int | str] | None, frames: Sequence[bytes]
) -> tuple[str, dict[str, Any]]:
    """Return the class name and values of the first message whose declaration parses `frames`.

    Raises:
        construct.ConstructError: no declaration parses them; the error is that of the last one
        tried.
    """
    stream = b"".join(len(item).to_bytes(4, "big") + item for item in frames)
    refusal = cs.ConstructError("there are no messages")
    for name, declaration in messages.items():
        try:
            announced = _announced(flags, frames, declaration)
            return name, flat(declaration.parse(stream, flags=announced))
        except cs.ConstructError as error:
            refusal = error
        except RecursionError:
            refusal = cs.ConstructError("too many values inside each other for Construct")
    raise refusal


def build_frames(declaration: cs.Struct, values: Mapping[str, Any]) -> list[bytes]:
    """Return the frames that `declaration` builds from `values`, as returned by `parse_frames`."""
    nested = dict(values)
    for part in declaration.subcons:
        # A frame with several fields has its own name; its values are stored with the others.
        nested.setdefault(part.name or "", values)
    try:
        stream = declaration.build(nested, flags=values.get("flags", 0))
    except RecursionError:
        raise cs.ConstructError("too many values inside each other for Construct") from None
    reader, frames = BytesIO(stream), []
    while size := reader.read(4):
        frames.append(reader.read(int.from_bytes(size, "big")))
    return frames


def _announced(flags: tuple[int, int | str] | None, frames: Sequence[bytes], declaration: cs.Struct) -> int:
    """Return the flags octet, which follows the parts that it announces; 0 if there is none.

    Raises:
        construct.ConstructError: it is behind values that the declaration does not parse.
    """
    if flags is None or not frames:
        return 0
    index, place = flags
    if isinstance(place, int):
        return frames[index][place] if len(frames[index]) > place else 0
    # The last element of the declaration is the end of the frames.
    header = cs.Struct(declaration.subcons[index - 1])
    found: int = flat(header.parse(len(frames[index]).to_bytes(4, "big") + frames[index])).get(place, 0)
    return found
