"""Values of a message's fields, from what a person types and from what `specwire decode --json` writes.

What a field takes is read from the type that the generated class declares. Typed, integers may be the names that the
protocol gives them, octets are text, ``hex:`` and digits, or ``@`` and a file; a field that takes several is given several
times. In JSON octets are hexadecimal, as `decode` writes them; a field that is typed as ``FIELD:=JSON`` is read as that.
"""

from __future__ import annotations

import json
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum, IntFlag
from pathlib import Path
from types import ModuleType
from typing import Any
from uuid import UUID

import msgspec

from specwire.runtime.cli.console import fail, meant
from specwire.runtime.cli.packages import class_of_message

MAX_FILE_OCTETS = 1 << 30


class Fields:
    """The fields of one message class.

    Args:
        package: its package.
        name: the class, or the grammar's name of the message; a name that is none ends the command.
    """

    def __init__(self, package: ModuleType, name: str) -> None:
        self._package = package
        self.name = class_of_message(package, name)
        declared = getattr(package.codec, self.name)
        hints = typing.get_type_hints(declared)
        self._types = {field.name: hints[field.name] for field in msgspec.structs.fields(declared)}
        self._required = [field.name for field in msgspec.structs.fields(declared) if field.required]

    def build(self, values: Mapping[str, Any]) -> Any:
        """Return the message with these values; a field that is missing ends the command."""
        missing = [name.rstrip("_") for name in self._required if name not in values]
        if missing:
            fail(f"{self.name} needs {' and '.join(missing)}{_listed(self._types)}")
        return self._package.MESSAGES[self.name](**values)

    def from_texts(self, texts: Sequence[str]) -> dict[str, Any]:
        """Return the values of ``FIELD=VALUE`` and ``FIELD:=JSON`` texts."""
        found: dict[str, Any] = {}
        for text in texts:
            name, separator, value = text.partition("=")
            if not separator:
                fail(f"{text!r} is no FIELD=VALUE{_listed(self._types)}")
            field = self._field(name.removesuffix(":"))
            if name.endswith(":"):
                found[field] = self._from_json(field, value)
                continue
            kind = _given(self._types[field])
            item = _item_type(kind)
            if item is not None:
                found[field] = (*found.get(field, ()), self._typed(field, item, value))
            elif field in found:
                fail(f"{name} is given twice")
            else:
                found[field] = self._typed(field, kind, value)
        return found

    def from_object(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the values of an object as `specwire decode --json` has it under ``fields``."""
        return {
            (field := self._field(name)): self._plain(field, self._types[field], value)
            for name, value in values.items()
        }

    def _field(self, name: str) -> str:
        wanted = name.replace("-", "_").rstrip("_")
        for field in self._types:
            if field.rstrip("_") == wanted:
                return field
        own = [field.rstrip("_") for field in self._types]
        fail(f"{self.name} has no field {name!r}{meant(name, own) or _listed(own)}")

    def _from_json(self, field: str, text: str) -> Any:
        try:
            value = json.loads(text)
        except ValueError:
            fail(f"{field.rstrip('_')}: {text!r} is not JSON")
        return self._plain(field, self._types[field], value)

    # ---- typed

    def _typed(self, field: str, kind: Any, text: str) -> Any:
        if kind is int:
            return self._number(field, text)
        if kind is bytes:
            return _octets(field, text)
        if kind is str:
            return text
        if kind in _READERS:
            return _from_text(field, kind, text)
        if _is_pair(kind):
            name, separator, value = text.partition("=")
            if not separator:
                fail(f"{field.rstrip('_')}={text}: expected NAME=VALUE behind the field's name")
            return name, self._typed(field, typing.get_args(kind)[1], value)
        fail(f"{field.rstrip('_')} has parts of its own; write it as JSON: {field.rstrip('_')}:='[...]'")

    def _number(self, field: str, text: str) -> int:
        named = _named_numbers(self._package, field)
        try:
            if text.lower() in named:
                return named[text.lower()]
            if field == "flags" and hasattr(self._package, "Flags"):
                return sum({named[part.strip().lower()] for part in text.split("|")}) if text else 0
            return int(text, 0)
        except (KeyError, ValueError):
            pass
        try:
            return int(text, 0)
        except ValueError:
            names = f", nor one of {', '.join(sorted(named))}" if named else ""
            fail(f"{field.rstrip('_')}: {text!r} is no integer{names}")

    # ---- JSON

    def _plain(self, field: str, kind: Any, value: Any) -> Any:
        """The value that `value` is in JSON; what does not fit is left to the encoder, which names the field."""
        choices = _choices(kind)
        if value is None or not choices:
            return value
        if bytes in choices and isinstance(value, str) and str not in choices:
            return _hexadecimal(field, value)
        if choices[0] in (float, UUID) and isinstance(value, str):
            return _from_text(field, choices[0], value)
        records = [choice for choice in choices if hasattr(choice, "__match_args__")]
        if isinstance(value, dict) and records:
            return self._record(field, records, value)
        if isinstance(value, list):
            kind = next((choice for choice in choices if typing.get_origin(choice) is tuple), None)
            items = typing.get_args(kind)
            if _is_pair(kind) and len(value) == len(items):
                return tuple(self._plain(field, own, item) for own, item in zip(items, value, strict=True))
            return tuple(self._plain(field, items[0] if items else Any, item) for item in value)
        return value

    def _record(self, field: str, records: Sequence[Any], value: Mapping[str, Any]) -> Any:
        wanted = value.get("_type")
        kind = next((own for own in records if wanted in (None, own.NAME)), None)
        if kind is None:
            known = ", ".join(own.NAME for own in records)
            fail(f"{field.rstrip('_')}: there is no kind {wanted!r} of it; there are {known}")
        hints = typing.get_type_hints(kind)
        own = {name.rstrip("_"): name for name in kind.__match_args__}
        parts = {own.get(name.rstrip("_"), name): item for name, item in value.items() if name != "_type"}
        unknown = [name for name in parts if name not in kind.__match_args__]
        if unknown:
            fail(f"{field.rstrip('_')} has no part {unknown[0]!r}")
        made = {name: self._plain(f"{field}.{name}", hints[name], item) for name, item in parts.items()}
        try:
            return getattr(self._package, kind.__name__)(**made)
        except TypeError as error:
            fail(f"{field.rstrip('_')}: {error}")


def _listed(names: Sequence[str] | Mapping[str, Any]) -> str:
    own = ", ".join(name.rstrip("_") for name in names)
    return f"; its fields are {own}" if own else "; it has no fields"


def _choices(kind: Any) -> tuple[Any, ...]:
    """The types of a union, or the one; None is left out."""
    if typing.get_origin(kind) in (typing.Union, types.UnionType):
        return tuple(choice for choice in typing.get_args(kind) if choice is not types.NoneType)
    return () if kind is Any else (kind,)


def _given(kind: Any) -> Any:
    """The type of a value that is there: optional fields have two."""
    choices = _choices(kind)
    return choices[0] if len(choices) == 1 else kind


def _item_type(kind: Any) -> Any:
    """The type of one of several values, None for a type of one value."""
    items = typing.get_args(kind)
    return items[0] if typing.get_origin(kind) is tuple and items[1:] == (Ellipsis,) else None


def _is_pair(kind: Any) -> bool:
    items = typing.get_args(kind)
    return typing.get_origin(kind) is tuple and len(items) == 2 and items[1] is not Ellipsis


def _named_numbers(package: ModuleType, field: str) -> dict[str, int]:
    """The names that a protocol gives to numbers of a field, in small letters."""
    name = field.rstrip("_")
    enum = getattr(package, "Flags" if name == "flags" else name.title().replace("_", ""), None)
    found: dict[str, int] = {}
    if isinstance(enum, type) and issubclass(enum, IntEnum | IntFlag):
        found = {str(member.name).lower(): int(member) for member in enum}
    prefix = f"{name.upper()}_"
    for constant in dir(package):
        if constant.startswith(prefix) and isinstance(getattr(package, constant), int):
            found[constant.lower()] = found[constant.removeprefix(prefix).lower()] = getattr(
                package, constant
            )
    return found


def _truth(text: str) -> bool:
    return {"true": True, "1": True, "false": False, "0": False}[text.lower()]


_READERS: Mapping[Any, tuple[str, Callable[[str], Any]]] = {
    bool: ("neither true nor false", _truth), float: ("no number", float), UUID: ("no UUID", UUID),
}  # fmt: skip
"""For a type: what another text is, and how a text is read."""


def _from_text(field: str, kind: Any, text: str) -> Any:
    otherwise, read = _READERS[kind]
    try:
        return read(text)
    except (KeyError, ValueError):
        fail(f"{field.rstrip('_')}: {text[:60]!r} is {otherwise}")


def _octets(field: str, text: str) -> bytes:
    if text.startswith("hex:"):
        return _hexadecimal(field, text.removeprefix("hex:"))
    if text.startswith("@"):
        path = Path(text[1:])
        if path.stat().st_size > MAX_FILE_OCTETS:
            fail(f"{path}: a field has at most {MAX_FILE_OCTETS} octets")
        return path.read_bytes()
    return text.removeprefix("text:").encode("utf-8", "surrogateescape")


def _hexadecimal(field: str, text: str) -> bytes:
    try:
        return bytes.fromhex(text)
    except ValueError:
        fail(f"{field.rstrip('_')}: {text[:60]!r} is not hexadecimal")
