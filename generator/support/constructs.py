"""What the Construct declarations of all packages are made of, beyond Construct itself.

A message of several ZeroMQ frames has no octets of its own. For Construct, which reads one stream, the
frames are put one after another, each with its length in four octets in front.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from io import BytesIO
from typing import TYPE_CHECKING, Any

import construct as cs

if TYPE_CHECKING:
    # Generic in the stubs only: at run time Construct's classes take no subscript.
    _Construct = cs.Construct[Any, Any]
    _Adapter = cs.Adapter[Any, Any, Any, Any]
    _Validator = cs.Validator[Any, Any]
else:
    _Construct, _Adapter, _Validator = cs.Construct, cs.Adapter, cs.Validator


def frame(inner: cs.Construct[Any, Any]) -> cs.Construct[Any, Any]:
    """Return the declaration of one frame that holds `inner` and nothing after it."""
    return cs.Prefixed(cs.Int32ub, cs.FocusedSeq("inner", "inner" / inner, cs.Terminated))


def message(*parts: cs.Construct[Any, Any]) -> cs.Struct:
    """Return the declaration of a message: its parts and no frame after them."""
    return cs.Struct(*parts, cs.Terminated)


class Stack(_Construct):
    """Frames up to an empty one, each read as `element`; the value is a list."""

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
    """A part at the end that may be missing: read where octets are left, written where there is a value."""

    def __init__(self, name: str, inner: cs.Construct[Any, Any]) -> None:
        super().__init__()
        self.part = name
        self.inner = inner
        self.flagbuildnone = True

    def _parse(self, stream: Any, context: Any, path: str) -> Any:
        return None if cs.stream_iseof(stream) else self.inner._parsereport(stream, context, path)

    def _build(self, obj: Any, stream: Any, context: Any, path: str) -> Any:
        return None if obj is None else self.inner._build(obj, stream, context, path)


class Divided(_Adapter):
    """A text ``name=value`` as a pair, divided at the first ``=`` or at the last."""

    def __init__(self, text: cs.Construct[Any, Any], *, last: bool = False) -> None:
        super().__init__(text)
        self.last = last

    def _decode(self, obj: str, context: Any, path: str) -> tuple[str, str]:
        name, equals, value = obj.rpartition("=") if self.last else obj.partition("=")
        if not equals:
            raise cs.ValidationError(f"no '=' in {obj!r}", path=path)
        return name, value

    def _encode(self, obj: tuple[str, str], context: Any, path: str) -> str:
        name, value = obj
        if "=" in (value if self.last else name):
            raise cs.ValidationError(f"'=' in {obj!r}", path=path)
        return f"{name}={value}"


class Unterminated(_Adapter):
    """A text with or without a NUL at its end; none inside it."""

    def _decode(self, obj: str, context: Any, path: str) -> str:
        return self._encode(obj.removesuffix("\0"), context, path)

    def _encode(self, obj: str, context: Any, path: str) -> str:
        if "\0" in obj:
            raise cs.ValidationError("NUL inside a text", path=path)
        return obj


class AtLeast(_Validator):
    """Octets of which there are `minimum` or more."""

    def __init__(self, minimum: int, octets: cs.Construct[Any, Any]) -> None:
        super().__init__(octets)
        self.minimum = minimum

    def _validate(self, obj: bytes, context: Any, path: str) -> bool:
        return len(obj) >= self.minimum


def parse_frames(
    messages: Mapping[str, cs.Struct], flags: tuple[int, int] | None, frames: Sequence[bytes]
) -> tuple[str, dict[str, Any]]:
    """Return class name and values of the first message whose declaration reads `frames`.

    Raises:
        construct.ConstructError: none does; the error is that of the last message tried.
    """
    stream = b"".join(len(item).to_bytes(4, "big") + item for item in frames)
    announced = _announced(flags, frames)
    refusal = cs.ConstructError("there are no messages")
    for name, declaration in messages.items():
        try:
            return name, _flat(declaration.parse(stream, flags=announced))
        except cs.ConstructError as error:
            refusal = error
    raise refusal


def build_frames(declaration: cs.Struct, values: Mapping[str, Any]) -> list[bytes]:
    """Return the frames that `declaration` builds from `values`, as `parse_frames` returns them."""
    nested = dict(values)
    for part in declaration.subcons:
        # A frame with several fields has a name of its own; its values are among the others.
        nested.setdefault(part.name or "", values)
    stream = declaration.build(nested, flags=values.get("flags", 0))
    reader, frames = BytesIO(stream), []
    while size := reader.read(4):
        frames.append(reader.read(int.from_bytes(size, "big")))
    return frames


def _announced(flags: tuple[int, int] | None, frames: Sequence[bytes]) -> int:
    """The flags octet, which stands behind the parts that it announces; 0 where the frames have none."""
    if flags is None or not frames or len(frames[flags[0]]) <= flags[1]:
        return 0
    return frames[flags[0]][flags[1]]


def _flat(container: Any) -> dict[str, Any]:
    """The values of all frames in one dictionary, in wire order."""
    values: dict[str, Any] = {}
    for name, value in container.items():
        if name.startswith("_"):
            continue
        if isinstance(value, cs.Container):
            values |= _flat(value)
        else:
            values[name] = list(value) if isinstance(value, cs.ListContainer) else value
    return values
