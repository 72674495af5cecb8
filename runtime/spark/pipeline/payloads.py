"""Columns of the typed tables for payloads with separate schemas, as profiles define them.

The manifest stores the columns, not the profiles that define them. Therefore a watch continues
without the profiles, and a profile with other wording but the same columns is the same request.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import msgspec
import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_type, to_arrow_type
from pyspark.sql.types import StructType

from specwire.runtime.package_search import without_edition
from specwire.runtime.packages import load_package
from specwire.runtime.schemas.payloads import Payload, PayloadError, load_payloads, protocol_of
from specwire.runtime.spark.errors import InputError
from specwire.runtime.spark.protocols import load_schemas


class PayloadColumn(msgspec.Struct, frozen=True):
    """A column of the typed tables of one protocol.

    Attributes:
        protocol: protocol of the messages.
        column: name of the column.
        type: its type in Spark's JSON format.
        by: field that distinguishes the kinds of messages.
        pattern: regular expression that matches the whole value of that field.
        places: pairs of message class and field that hold such payloads.
    """

    protocol: str
    column: str
    type: dict[str, Any]
    by: str
    pattern: str
    places: tuple[tuple[str, str], ...]


def read_profiles(profiles: Iterable[Path], protocol: str | None = None) -> tuple[PayloadColumn, ...]:
    """Return, sorted, the columns that the ``[[payload]]`` tables of profiles define.

    `protocol` is the protocol of every message; None for the one that its tap stated.

    Raises:
        InputError: a profile or schema cannot be used, is for another protocol, or does not define
            a distinct column.
    """
    found = [column for profile in profiles for column in _read(profile, protocol)]
    seen: set[tuple[str, str]] = set()
    for column in found:
        key = column.protocol, column.column.casefold()
        if key in seen:
            raise InputError(f"two payloads become the column {column.column}: give one a `name`")
        seen.add(key)
    return tuple(sorted(found, key=lambda column: (column.protocol, column.column)))


def payloads_of(columns: Iterable[PayloadColumn], package: str) -> tuple[Payload, ...]:
    """Return the payloads that a package's messages may have, as `with_payloads` takes them."""
    schemas = load_schemas(package).SCHEMAS
    found: list[Payload] = []
    for one in columns:
        if one.protocol != without_edition(package):
            continue
        # Another edition may lack messages and fields.
        places = tuple(
            (message, field)
            for message, field in one.places
            if message in schemas and {field, one.by} <= set(schemas[message].fieldNames())
        )
        if places:
            type = to_arrow_type(StructType.fromJson(one.type))
            found.append(Payload(one.column, type, one.by, one.pattern, places))
    return tuple(found)


def name_differences(ours: Sequence[PayloadColumn], theirs: Sequence[PayloadColumn]) -> str:
    """Return a text that lists the columns in which two requests differ."""
    asked, there = ({(one.protocol, one.column): one for one in columns} for columns in (ours, theirs))
    names = sorted({key for key in (*asked, *there) if asked.get(key) != there.get(key)})

    def say(key: tuple[str, str]) -> str:
        state = "is new" if key not in there else "is missing" if key not in asked else "is another"
        return f"{key[1]} of {key[0]} {state}"

    return ", ".join(map(say, names))


def _read(profile: Path, protocol: str | None) -> Iterator[PayloadColumn]:
    try:
        stated = protocol_of(profile)
        name = stated or (protocol and without_edition(protocol))
        if name is None:
            raise InputError(
                f"{profile}: it does not say whose payloads these are: add `name`, as in name = \"flux\""
            )  # fmt: skip
        if protocol is not None and without_edition(protocol) != name:
            raise InputError(f"{profile}: it is of {name}, and every message is read as {protocol}")
        load_schemas(protocol or name)
        payloads = load_payloads(profile, load_package(protocol or name))
    except PayloadError as error:
        raise InputError(str(error)) from error
    if not payloads:
        raise InputError(f"{profile}: it has no [[payload]] table; a payload needs `topic` and `json-schema`")
    for payload in payloads:
        _check_names(payload.type, f"{profile}: {payload.column}")
        type = json.loads(cast(StructType, from_arrow_type(payload.type)).json())
        yield PayloadColumn(name, payload.column, type, payload.by, payload.pattern, payload.places)


def _check_names(type: pa.DataType, place: str) -> None:
    """Raise InputError if a column of a type has no name, or names differ only in case."""
    if isinstance(type, pa.ListType):
        _check_names(type.value_type, place)
    if not isinstance(type, pa.StructType):
        return
    folded = [field.name.casefold() for field in type]
    for field in type:
        if not field.name:
            raise InputError(
                f"{place}: a property has no name, but every column needs one: remove the property"
            )
        if folded.count(field.name.casefold()) > 1:
            raise InputError(
                f"{place}: Spark does not tell {field.name!r} from its like in other case: leave one out of the schema"
            )
        _check_names(field.type, f"{place}.{field.name}")
