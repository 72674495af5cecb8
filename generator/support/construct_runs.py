"""Construct classes for runs of fields: sizes, counters, checksums, alignment, records.

A `Run` is a struct with numbers that its other fields define. When it is built, the values of these
numbers are not known before the rest is built, and the rest may depend on how many octets they
have. So a run is built with the numbers of the build before, until they are right.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from typing import TYPE_CHECKING, Any

import construct as cs
from construct.core import BytesIOWithOffsets

from specwire.generated.checksums import compute_checksum

if TYPE_CHECKING:
    # Generic in the stubs only: at run time Construct's classes accept no subscript.
    _Construct = cs.Construct[Any, Any]
    _Adapter = cs.Adapter[Any, Any, Any, Any]
else:
    _Construct, _Adapter = cs.Construct, cs.Adapter

_BUILDS = 8
"""Times that a run is built for its numbers; if they depend on each other, there may be none that fit."""

Check = tuple[str, str, tuple[tuple[str, str], ...]]
"""A number, the algorithm of the checksum in it, and the pairs of marks around the octets that it covers."""


@dataclass(slots=True)
class _State:
    """What is known of a run while it is parsed or built."""

    start: int
    numbers: dict[str, int]
    """Values that were read, or that are written."""
    found: dict[str, int] = field(default_factory=dict)
    """Values that follow from what was built."""
    marks: dict[str, int] = field(default_factory=dict)


class Run(cs.Struct):
    """Struct with counters, marks, checksums, or padding to a multiple."""

    def __init__(self, *fields: cs.Construct[Any, Any], checks: Sequence[Check] = ()) -> None:
        super().__init__(*fields)
        self.checks = checks

    def _parse(self, stream: Any, context: Any, path: str) -> Any:
        state = _State(cs.stream_tell(stream, path), {})
        values = super()._parse(stream, _with_state(context, state), path)
        end = cs.stream_tell(stream, path)
        stream.seek(state.start)
        for slot, right in self._checksums(stream.read(end - state.start), state).items():
            if state.numbers[slot] != right:
                raise cs.ChecksumError(f"{slot} is {state.numbers[slot]}, not {right}", path=path)
        return values

    def _build(self, obj: Any, stream: Any, context: Any, path: str) -> Any:
        numbers: dict[str, int] = {}
        for _ in range(_BUILDS):
            content, state = BytesIO(), _State(0, numbers)
            built = super()._build(obj, content, _with_state(context, state), path)
            octets = content.getvalue()
            found = state.found | self._checksums(octets, state)
            if found == numbers:
                stream.write(octets)
                return built
            numbers = found
        raise cs.IntegerError(f"no values of {', '.join(numbers)} fit each other", path=path)

    def _checksums(self, octets: bytes, state: _State) -> dict[str, int]:
        found: dict[str, int] = {}
        for slot, algorithm, ranges in self.checks:
            places = (
                (state.marks[begin] - state.start, state.marks[end] - state.start) for begin, end in ranges
            )
            found[slot] = compute_checksum(algorithm, b"".join(octets[begin:end] for begin, end in places))
        return found


def _with_state(context: Any, state: _State) -> Any:
    inner = cs.Container(context)
    inner["_state"] = state
    return inner


def _state(context: Any) -> _State:
    """Return the state of the innermost run."""
    while "_state" not in context:
        context = context["_"]
    state: _State = context["_state"]
    return state


class Derived(_Construct):
    """Number that follows from other fields of the run; a value that is given is ignored."""

    def __init__(self, slot: str, number: cs.Construct[Any, Any]) -> None:
        super().__init__()
        self.slot = slot
        self.number = number
        self.flagbuildnone = True

    def _parse(self, stream: Any, context: Any, path: str) -> int:
        value: int = self.number._parsereport(stream, context, path)
        _state(context).numbers[self.slot] = value
        return value

    def _build(self, obj: Any, stream: Any, context: Any, path: str) -> Any:
        return self.number._build(_state(context).numbers.get(self.slot, 0), stream, context, path)

    def _sizeof(self, context: Any, path: str) -> int:
        size: int = self.number._sizeof(context, path)
        return size


class Counted(_Construct):
    """Value of as many octets as the number in `slot` says, less `plus`.

    The fields of a struct become fields of the run.
    """

    def __init__(self, slot: str, inner: cs.Construct[Any, Any], plus: int = 0) -> None:
        super().__init__()
        self.slot = slot
        self.inner = inner
        self.plus = plus
        self.flagbuildnone = isinstance(inner, cs.Struct)

    def _parse(self, stream: Any, context: Any, path: str) -> Any:
        return _parse_all(self.inner, _number(self, context, path), stream, context, path)

    def _build(self, obj: Any, stream: Any, context: Any, path: str) -> Any:
        start = stream.tell()
        self.inner._build(_values(context) if self.flagbuildnone else obj, stream, context, path)
        _state(context).found[self.slot] = stream.tell() - start + self.plus
        return obj


class Items(_Construct):
    """As many elements as the number in `slot` says, less `plus`; the value is a list."""

    def __init__(self, slot: str, element: cs.Construct[Any, Any], plus: int = 0) -> None:
        super().__init__()
        self.slot = slot
        self.element = element
        self.plus = plus

    def _parse(self, stream: Any, context: Any, path: str) -> list[Any]:
        number = _number(self, context, path)
        return [self.element._parsereport(stream, context, path) for _ in range(number)]

    def _build(self, obj: Any, stream: Any, context: Any, path: str) -> Any:
        for item in obj:
            self.element._build(item, stream, context, path)
        _state(context).found[self.slot] = len(obj) + self.plus
        return obj


class Mark(_Construct):
    """Position of the octets that a checksum covers."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.mark = name
        self.flagbuildnone = True

    def _parse(self, stream: Any, context: Any, path: str) -> None:
        _state(context).marks[self.mark] = stream.tell()

    def _build(self, obj: Any, stream: Any, context: Any, path: str) -> Any:
        _state(context).marks[self.mark] = stream.tell()


class Aligned(_Construct):
    """Octets up to a multiple of `multiple` from the start of the run; any are read, `fill` is written."""

    def __init__(self, multiple: int, fill: bytes) -> None:
        super().__init__()
        self.multiple = multiple
        self.fill = fill
        self.flagbuildnone = True

    def _parse(self, stream: Any, context: Any, path: str) -> None:
        cs.stream_read(stream, self._size(stream, context), path)

    def _build(self, obj: Any, stream: Any, context: Any, path: str) -> Any:
        stream.write(self.fill * self._size(stream, context))

    def _size(self, stream: Any, context: Any) -> int:
        size: int = (_state(context).start - stream.tell()) % self.multiple
        return size


class Before(_Construct):
    """Value up to the last `octets` octets."""

    def __init__(self, octets: int, inner: cs.Construct[Any, Any]) -> None:
        super().__init__()
        self.octets = octets
        self.inner = inner

    def _parse(self, stream: Any, context: Any, path: str) -> Any:
        start = stream.tell()
        size = len(stream.read()) - self.octets
        stream.seek(start)
        if size < 0:
            raise cs.StreamError(f"fewer than {self.octets} octets", path=path)
        return _parse_all(self.inner, size, stream, context, path)

    def _build(self, obj: Any, stream: Any, context: Any, path: str) -> Any:
        return self.inner._build(obj, stream, context, path)


class Sized(_Construct):
    """Size in one of several forms, followed by the struct `inner` of that many octets.

    A form is a tag and the number of octets of the integer after it. The first form that can hold
    the size is written. The fields of `inner` become fields of the enclosing struct.
    """

    def __init__(self, forms: Sequence[tuple[bytes, int]], inner: cs.Construct[Any, Any]) -> None:
        super().__init__()
        self.forms = forms
        self.inner = inner
        self.flagbuildnone = True

    def _parse(self, stream: Any, context: Any, path: str) -> Any:
        start = cs.stream_tell(stream, path)
        for tag, octets in sorted(self.forms, key=lambda form: not form[0]):
            stream.seek(start)
            if stream.read(len(tag)) == tag:
                size = cs.BytesInteger(octets).parse_stream(stream)
                return _parse_all(self.inner, size, stream, context, path)
        raise cs.ConstError("no form of a size", path=path)

    def _build(self, obj: Any, stream: Any, context: Any, path: str) -> Any:
        for tag, octets in self.forms:
            content = BytesIOWithOffsets(b"", stream, stream.tell() + len(tag) + octets)
            self.inner._build(_values(context), content, context, path)
            if len(content.getvalue()) >= 1 << (8 * octets):
                continue
            size = tag + len(content.getvalue()).to_bytes(octets, "big")
            if tag or not any(other and size.startswith(other) for other, _ in self.forms):
                stream.write(size + content.getvalue())
                return obj
        raise cs.IntegerError("no form can hold the size", path=path)


class Record(_Adapter):
    """Struct `inner` inside another; the value is a dictionary.

    If `deepest` is not 0, at most so many records contain each other.
    """

    def __init__(self, inner: cs.Construct[Any, Any], *, deepest: int = 0) -> None:
        super().__init__(inner)
        self.deepest = deepest

    def _parse(self, stream: Any, context: Any, path: str) -> Any:
        return super()._parse(stream, self._deeper(context, path), path)

    def _build(self, obj: Any, stream: Any, context: Any, path: str) -> Any:
        return super()._build(obj, stream, self._deeper(context, path), path)

    def _deeper(self, context: Any, path: str) -> Any:
        """Return the context of the struct, which counts the records around it."""
        if not self.deepest:
            return context
        outer = context
        while outer is not None and "_depth" not in outer:
            outer = outer.get("_")
        depth = 0 if outer is None else outer["_depth"]
        if depth == self.deepest:
            raise cs.ValidationError(f"more than {self.deepest} values inside each other", path=path)
        inner = cs.Container(context)
        inner["_depth"] = depth + 1
        return inner

    def _decode(self, obj: Any, context: Any, path: str) -> dict[str, Any]:
        return flat(obj)

    def _encode(self, obj: Any, context: Any, path: str) -> Any:
        return obj


class Tagged(_Construct):
    """One of several records; the value is ``{class: record}``.

    The first tag that begins the record decides; if `folded`, with letters in either case.
    """

    def __init__(
        self, options: Mapping[bytes, tuple[str, cs.Construct[Any, Any]]], *, folded: bool = False
    ) -> None:
        super().__init__()
        self.options = options
        self.folded = folded

    def _parse(self, stream: Any, context: Any, path: str) -> dict[str, Any]:
        start = cs.stream_tell(stream, path)
        for tag, (name, inner) in self.options.items():
            found = stream.read(len(tag))
            stream.seek(start)
            if (found.lower() if self.folded else found) == tag:
                return {name: inner._parsereport(stream, context, path)}
        raise cs.ConstError("no tag of a record", path=path)

    def _build(self, obj: Any, stream: Any, context: Any, path: str) -> Any:
        ((chosen, value),) = obj.items()
        for name, inner in self.options.values():
            if name == chosen:
                inner._build(value, stream, context, path)
        return obj


def flat(container: Any) -> dict[str, Any]:
    """Return the values of all frames in one dictionary, in wire order, including those of structs inside."""
    values: dict[str, Any] = {}
    for name, value in container.items():
        if name.startswith("_"):
            continue
        if isinstance(value, cs.Container):
            values |= flat(value)
        else:
            values[name] = list(value) if isinstance(value, cs.ListContainer) else value
    return values


def _parse_all(inner: cs.Construct[Any, Any], size: int, stream: Any, context: Any, path: str) -> Any:
    """Parse the next `size` octets as `inner`, which must be all of them."""
    content = BytesIOWithOffsets.from_reading(stream, size, path)
    value = inner._parsereport(content, context, path)
    cs.Terminated._parsereport(content, context, path)
    return value


def _number(counted: Counted | Items, context: Any, path: str) -> int:
    """Return the number of octets or items."""
    number = _state(context).numbers[counted.slot] - counted.plus
    if number < 0:
        raise cs.IntegerError(f"{counted.slot} is less than {counted.plus}", path=path)
    return number


def _values(context: Any) -> dict[str, Any]:
    return {name: value for name, value in context.items() if not name.startswith("_")}
