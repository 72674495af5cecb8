"""Construct classes for texts, octets and lists that Construct itself lacks."""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING, Any

import construct as cs

if TYPE_CHECKING:
    # Generic in the stubs only: at run time Construct's classes accept no subscript.
    _Construct = cs.Construct[Any, Any]
    _Adapter = cs.Adapter[Any, Any, Any, Any]
    _Validator = cs.Validator[Any, Any]
else:
    _Construct, _Adapter, _Validator = cs.Construct, cs.Adapter, cs.Validator


class Divided(_Adapter):
    """Text ``name=value`` as a pair, split at the first or the last ``=``."""

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
    """Text with or without a NUL at its end, and none inside."""

    def _decode(self, obj: str, context: Any, path: str) -> str:
        return self._encode(obj.removesuffix("\0"), context, path)

    def _encode(self, obj: str, context: Any, path: str) -> str:
        if "\0" in obj:
            raise cs.ValidationError("NUL inside a text", path=path)
        return obj


class Until(_Construct):
    """Value that ends before the first `end`, which remains in the stream."""

    def __init__(self, end: bytes, inner: cs.Construct[Any, Any]) -> None:
        super().__init__()
        self.end = end
        self.inner = inner

    def _parse(self, stream: Any, context: Any, path: str) -> Any:
        start = stream.tell()
        left = stream.read()
        if self.end not in left:
            raise cs.StreamError(f"no {self.end!r} in {left!r}", path=path)
        size = left.index(self.end)
        stream.seek(start + size)
        return self.inner.parse(left[:size])

    def _build(self, obj: Any, stream: Any, context: Any, path: str) -> Any:
        octets = self.inner.build(obj)
        if (octets + self.end).index(self.end) != len(octets):
            raise cs.ValidationError(f"{self.end!r} in {octets!r}", path=path)
        stream.write(octets)
        return obj


class Among(_Construct):
    """Value of the longest run of the octets `among`, at least `minimum` of them."""

    def __init__(self, among: bytes, inner: cs.Construct[Any, Any], minimum: int = 0) -> None:
        super().__init__()
        self.among = among
        self.inner = inner
        self.minimum = minimum

    def _parse(self, stream: Any, context: Any, path: str) -> Any:
        start = stream.tell()
        left = stream.read()
        size = len(left) - len(left.lstrip(self.among))
        stream.seek(start + size)
        return self.inner.parse(self._checked(left[:size], path))

    def _build(self, obj: Any, stream: Any, context: Any, path: str) -> Any:
        stream.write(self._checked(self.inner.build(obj), path))
        return obj

    def _checked(self, octets: bytes, path: str) -> bytes:
        if octets.translate(None, self.among) or len(octets) < self.minimum:
            raise cs.ValidationError(f"{octets!r} has other octets, or too few", path=path)
        return octets


class Folded(_Construct):
    """Constant that is read with letters in either case."""

    def __init__(self, octets: bytes) -> None:
        super().__init__()
        self.octets = octets
        self.flagbuildnone = True

    def _parse(self, stream: Any, context: Any, path: str) -> bytes:
        found = cs.stream_read(stream, len(self.octets), path)
        if found.lower() != self.octets.lower():
            raise cs.ConstError(f"{found!r} is not {self.octets!r}", path=path)
        return self.octets

    def _build(self, obj: Any, stream: Any, context: Any, path: str) -> Any:
        stream.write(self.octets)
        return obj


class Words(_Adapter):
    """One of several texts, which is read with letters in either case."""

    def __init__(self, *options: str) -> None:
        super().__init__(cs.GreedyBytes)
        self.options = options

    def _decode(self, obj: bytes, context: Any, path: str) -> str:
        for option in self.options:
            if option.encode().lower() == obj.lower():
                return option
        raise cs.ValidationError(f"{obj!r} is none of {self.options!r}", path=path)

    def _encode(self, obj: str, context: Any, path: str) -> bytes:
        if obj not in self.options:
            raise cs.ValidationError(f"{obj!r} is none of {self.options!r}", path=path)
        return obj.encode()


class AtLeast(_Validator):
    """Octets or entries, at least `minimum` of them."""

    def __init__(self, minimum: int, inner: cs.Construct[Any, Any]) -> None:
        super().__init__(inner)
        self.minimum = minimum

    def _validate(self, obj: Any, context: Any, path: str) -> bool:
        return len(obj) >= self.minimum


class AtMost(_Validator):
    """Octets, at most `maximum` of them."""

    def __init__(self, maximum: int, inner: cs.Construct[Any, Any]) -> None:
        super().__init__(inner)
        self.maximum = maximum

    def _validate(self, obj: Any, context: Any, path: str) -> bool:
        return len(obj) <= self.maximum


class Padded(_Adapter):
    """Text of fixed length, padded with the octet `fill`; the value is the text without padding."""

    def __init__(self, octets: int, fill: bytes) -> None:
        super().__init__(cs.Bytes(octets))
        self.octets = octets
        self.fill = fill

    def _decode(self, obj: bytes, context: Any, path: str) -> str:
        while obj.endswith(self.fill):
            obj = obj[:-1]
        try:
            return obj.decode("utf-8")
        except UnicodeDecodeError as error:
            raise cs.StringError(str(error), path=path) from error

    def _encode(self, obj: str, context: Any, path: str) -> bytes:
        octets = obj.encode("utf-8")
        if octets.endswith(self.fill) or len(octets) > self.octets:
            raise cs.ValidationError(f"{obj!r} is too long, or ends as padding does", path=path)
        return octets + self.fill * (self.octets - len(octets))


class ToEnd(_Construct):
    """Elements up to the end of the octets, or up to the octets `until`; the value is a list."""

    def __init__(self, element: cs.Construct[Any, Any], until: bytes = b"") -> None:
        super().__init__()
        self.element = element
        self.until = until

    def _parse(self, stream: Any, context: Any, path: str) -> list[Any]:
        # GreedyRange would treat an element that cannot be parsed as the end.
        values = []
        while not cs.stream_iseof(stream) and not (self.until and follows(stream, self.until)):
            values.append(self.element._parsereport(stream, context, path))
        return values

    def _build(self, obj: Any, stream: Any, context: Any, path: str) -> Any:
        for item in obj:
            content = BytesIO()
            self.element._build(item, content, context, path)
            octets = content.getvalue()
            if self.until and octets.startswith(self.until):
                raise cs.ValidationError(f"an element that begins with {self.until!r}", path=path)
            stream.write(octets)
        return obj


def follows(stream: Any, octets: bytes, *, folded: bool = False) -> bool:
    """Return whether the next octets are `octets`; if `folded`, with letters in either case."""
    start = stream.tell()
    found: bytes = stream.read(len(octets))
    stream.seek(start)
    return found.lower() == octets.lower() if folded else found == octets
