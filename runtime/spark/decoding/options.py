"""Options of `decode` and of the data source, by name, from text or from Python values.

Spark passes the options of a reader as text, with names that ignore case. So a flag may be
``"true"`` and a list ``"Request,Response"``. Unknown options and invalid values raise InputError,
so that a misspelt option is not silently ignored.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from difflib import get_close_matches
from enum import StrEnum
from typing import Literal, cast

import msgspec

from specwire.runtime.spark.errors import InputError
from specwire.runtime.spark.protocols import known_protocols


class Mode(StrEnum):
    """Treatment of a row that does not decode, with the names that Spark's readers use."""

    PERMISSIVE = "PERMISSIVE"
    """The row is kept, with `_error` and its raw `_frames`."""
    DROPMALFORMED = "DROPMALFORMED"
    """The row is dropped."""
    FAILFAST = "FAILFAST"
    """The query fails; the error names the file, the message, the field and the offset."""


class Options(msgspec.Struct, frozen=True):
    """Options of one reading."""

    mode: Mode = Mode.PERMISSIVE
    dialect: str = ""
    """Suffix of the package name: ``ascii`` of ``norfab`` selects ``norfab_ascii``."""
    message: tuple[str, ...] = ()
    """Message classes to keep; empty for all."""
    columns: tuple[str, ...] = ()
    """Columns to keep, such as ``seq``, ``Request`` or ``Request.topic``; empty for all."""
    debug: bool = False
    """Whether to add a column with the octets of each field in hexadecimal."""
    record_id: bool = False
    record_frames: bool = False
    input_file: bool = False
    u64: Literal["decimal", "long"] = "decimal"
    """Type of unsigned integers of eight octets."""


KNOWN: tuple[str, ...] = Options.__struct_fields__
_MODES = tuple(Mode)
_FLAGS = {"true": True, "false": False}


def read_options(
    given: Mapping[str, object], known: Collection[str] = KNOWN, listed: Collection[str] = ()
) -> Options:
    """Return the options from values by name.

    Raises InputError for a name that is not in `known`, and for an invalid value of an option. The
    error lists the names in `listed`, or in `known` if `listed` is empty.
    """
    values: dict[str, object] = {}
    for name, value in given.items():
        key = name.casefold()
        if key not in known:
            raise InputError(_unknown(name, listed or known))
        values[key] = _read(key, value)
    return msgspec.convert(values, Options)


def resolve_dialect(protocol: str, dialect: str) -> str:
    """Return the name of the package for a dialect of a protocol.

    Raise InputError if there is none.
    """
    name = f"{protocol}_{dialect}" if dialect else protocol
    if not dialect or name in known_protocols():
        return name
    has = [
        known.removeprefix(f"{protocol}_") for known in known_protocols() if known.startswith(f"{protocol}_")
    ]
    raise InputError(f"option 'dialect' is {dialect!r}; {protocol} {_has('dialect', has)}")


def check_messages(protocol: str, asked: Sequence[str], known: Collection[str]) -> None:
    """Raise InputError for a message that the protocol does not have."""
    for name in asked:
        if name not in known:
            raise InputError(f"option 'message' names {name!r}; {protocol} has {', '.join(known)}")


def _read(name: str, value: object) -> object:
    match name:
        case "mode":
            return _word(name, str(value).upper(), _MODES, value)
        case "u64":
            return _word(name, str(value).casefold(), ("decimal", "long"), value)
        case "dialect":
            return value or ""
        case "message" | "columns":
            return _names(name, value)
        case _:
            return _flag(name, value)


def _word(name: str, word: str, known: Sequence[str], given: object) -> str:
    if word not in known:
        raise InputError(f"option {name!r} is {given!r}; it may be {' or '.join(known)}")
    return word


def _flag(name: str, value: object) -> bool:
    found = value if isinstance(value, bool) else _FLAGS.get(str(value).casefold())
    if found is None:
        raise InputError(f"option {name!r} is {value!r}; it may be true or false")
    return found


def _names(name: str, value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        value = [part.strip() for part in value.split(",") if part.strip()]
    if not isinstance(value, Sequence) or not all(isinstance(item, str) for item in value):
        raise InputError(f"option {name!r} is {value!r}; it may be names, or text with commas between them")
    return tuple(cast("Sequence[str]", value))


def _unknown(name: str, known: Collection[str]) -> str:
    near = get_close_matches(name.casefold(), known, 1)
    hint = f" (is it {near[0]!r}?)" if near else ""
    return f"there is no option {name!r}{hint}; the known ones are {', '.join(known)}"


def _has(what: str, names: Sequence[str]) -> str:
    return f"has {' and '.join(names)}" if names else f"has no {what} but its own"
