"""What `decode` and the data source can be asked for: each option by name, from text or from Python values.

Spark hands the options of a reader over as text and under names without case, so a flag may be ``"true"`` and a list
``"Request,Response"``. An option that is not known is refused by its name, and so is a value that an option
cannot have: a misspelt option would otherwise be one that nobody hears of.
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
    """What becomes of a row that does not decode, in the words of Spark's own readers."""

    PERMISSIVE = "PERMISSIVE"
    """It is kept, with `_error` and its raw `_frames`."""
    DROPMALFORMED = "DROPMALFORMED"
    """It is left out."""
    FAILFAST = "FAILFAST"
    """The query fails, and names the file, the message, the field and the offset."""


class Options(msgspec.Struct, frozen=True):
    """The options of one reading."""

    mode: Mode = Mode.PERMISSIVE
    dialect: str = ""
    """Part of the name of the package behind the protocol's: ``ascii`` of ``norfab`` is ``norfab_ascii``."""
    message: tuple[str, ...] = ()
    """The message classes to keep; none: all."""
    columns: tuple[str, ...] = ()
    """The columns to keep, ``seq`` or ``Request`` or ``Request.topic``; none: all."""
    debug: bool = False
    """Beside each field its octets in hexadecimal."""
    record_id: bool = False
    record_frames: bool = False
    input_file: bool = False
    u64: Literal["decimal", "long"] = "decimal"
    """What an unsigned integer of eight octets becomes."""


KNOWN: tuple[str, ...] = Options.__struct_fields__
_MODES = tuple(Mode)
_FLAGS = {"true": True, "false": False}


def read_options(
    given: Mapping[str, object], known: Collection[str] = KNOWN, listed: Collection[str] = ()
) -> Options:
    """Return the options that were given by name.

    InputError for a name that is none of `known`, which lists what is `listed` or else `known`; and for a value that
    an option cannot have.
    """
    values: dict[str, object] = {}
    for name, value in given.items():
        key = name.casefold()
        if key not in known:
            raise InputError(_unknown(name, listed or known))
        values[key] = _read(key, value)
    return msgspec.convert(values, Options)


def resolve_dialect(protocol: str, dialect: str) -> str:
    """Return the name of the package for a dialect of a protocol; InputError where there is none."""
    name = f"{protocol}_{dialect}" if dialect else protocol
    if not dialect or name in known_protocols():
        return name
    has = [
        known.removeprefix(f"{protocol}_") for known in known_protocols() if known.startswith(f"{protocol}_")
    ]
    raise InputError(f"option 'dialect' is {dialect!r}; {protocol} {_has('dialect', has)}")


def check_messages(protocol: str, asked: Sequence[str], known: Collection[str]) -> None:
    """InputError for a message that the protocol does not have."""
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
