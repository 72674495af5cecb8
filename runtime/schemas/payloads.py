"""Payloads with schemas of their own: ``[[payload]]`` in a profile, a column of a type of its own in decoded rows.

    [[payload]]
    topic = "sched.alloc"               # or a pattern: * is any run of characters
    json-schema = "alloc.schema.json"   # beside the profile

A decoded row whose topic is that one, and whose payload is a JSON object, has its properties in the column
``_payload_sched_alloc``; all other rows have null there, so payloads of many kinds stand in one table. The payload itself
stays where it is. What a property holds against its type is null; text is whatever JSON there is, in a string.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import pyarrow as pa

from specwire.runtime.schemas.json_types import JsonTypeError, struct_of

PREFIX = "_payload_"
"""How the columns' names begin: names that begin with ``_`` mean nothing to ``columns.encode``."""

MAX_OCTETS = 16 * 1024 * 1024
"""A payload beyond this is not read."""
MAX_FILE_OCTETS = 4 * 1024 * 1024
"""A schema or profile beyond this is not read."""


class PayloadError(ValueError):
    """A profile or schema that cannot be used: one sentence with the file and what to do."""


class _Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One ``[[payload]]``."""

    topic: str
    json_schema: str = msgspec.field(name="json-schema")
    by: str = "topic"
    message: str | None = None
    field: str | None = None
    name: str | None = None


class _Profile(msgspec.Struct, frozen=True):
    name: str | None = None
    payload: tuple[_Table, ...] = ()


class Payload(msgspec.Struct, frozen=True):
    """Payloads of one kind.

    Attributes:
        column: the column that they become.
        type: its type.
        by: the field that says which kind a message is of.
        pattern: a regular expression for the whole value of that field.
        places: message class and field that hold such payloads.
    """

    column: str
    type: Any
    by: str
    pattern: str
    places: tuple[tuple[str, str], ...]

    @property
    def field(self) -> pa.Field[Any]:
        """The column as schemas have it."""
        return pa.field(self.column, self.type)


def load_payloads(profile: Path, package: ModuleType) -> tuple[Payload, ...]:
    """Return what the ``[[payload]]`` tables of a profile say about the messages of a package.

    Raises:
        PayloadError: the profile or a schema cannot be read, or speaks of what the package has not.
    """
    found = tuple(_payload(table, profile, package) for table in _read_profile(profile).payload)
    names = [payload.column for payload in found]
    for name in names:
        if names.count(name) > 1:
            raise PayloadError(f"{profile}: two payloads become the column {name}: give one a `name`")
    return found


def protocol_of(profile: Path) -> str | None:
    """Return the protocol that a profile says it is of; None where it does not say.

    Raises:
        PayloadError: the profile cannot be read.
    """
    return _read_profile(profile).name


def _read_profile(profile: Path) -> _Profile:
    try:
        return msgspec.convert(tomllib.loads(_read(profile)), _Profile)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise PayloadError(f"{profile}: {error}; a payload is `topic` and `json-schema`") from error


def _payload(table: _Table, profile: Path, package: ModuleType) -> Payload:
    places = tuple(_places(table, package))
    if not places:
        raise PayloadError(
            f"{profile}: no message of {package.EDITION} has {table.by!r} and a field with JSON as [[payload]] "
            f"{table.topic!r} wants them; name `message`, `field` and `by`"
        )
    path = profile.parent / table.json_schema
    try:
        type = struct_of(json.loads(_read(path)))
    except (JsonTypeError, ValueError, RecursionError) as error:
        raise PayloadError(f"{path}: {error}; it has to be the JSON Schema of an object") from error
    name = table.name or re.sub(r"\W+", "_", table.topic).strip("_").lower()
    if not re.fullmatch(r"[A-Za-z0-9_]+", name):
        raise PayloadError(f"{profile}: {table.topic!r} gives no name for a column: add `name`")
    pattern = ".*".join(map(re.escape, table.topic.split("*")))
    return Payload(f"{PREFIX}{name}", type, table.by, pattern, places)


def _places(table: _Table, package: ModuleType) -> Iterable[tuple[str, str]]:
    """The fields that may hold such a payload: those that are said to hold JSON, unless one is named."""
    for class_name in package.MESSAGES:
        fields = {field.name: field for field in package.columns.SCHEMA.field(class_name).type}
        if table.by in fields and table.message in (None, class_name):
            for name, field in fields.items():
                holds_json = (field.metadata or {}).get(b"content") == b"json"
                if name == table.field or (table.field is None and holds_json):
                    yield class_name, name


def _read(path: Path) -> str:
    try:
        if path.exists() and not path.is_file():  # a pipe would have us wait, and a device may never end
            raise PayloadError(f"{path} is not a file: name a file with the text in it")
        with path.open("rb") as stream:
            octets = stream.read(MAX_FILE_OCTETS + 1)
    except OSError as error:
        raise PayloadError(f"{path} cannot be read: {error.strerror}") from error
    if len(octets) > MAX_FILE_OCTETS:
        raise PayloadError(
            f"{path} has more than {MAX_FILE_OCTETS:,} octets: leave out what no column is made of"
        )
    try:
        return octets.decode("utf-8")
    except UnicodeDecodeError as error:
        raise PayloadError(f"{path} is not UTF-8") from error


def with_payloads(batch: pa.RecordBatch, payloads: Sequence[Payload]) -> pa.RecordBatch:
    """Return decoded rows, as ``columns.decode`` gives them, with a column more for each kind of payload."""
    for payload in payloads:
        values: list[Any] = [None] * batch.num_rows
        wanted = re.compile(payload.pattern, re.DOTALL)
        for class_name, name in payload.places:
            message: Any = batch[class_name]
            topics, contents = message.field(payload.by), message.field(name)
            for number in range(batch.num_rows):
                topic = topics[number].as_py() if message[number].is_valid else None
                if topic is not None and wanted.fullmatch(topic):
                    values[number] = _parsed(contents[number].as_py(), payload.type)
        batch = batch.append_column(payload.column, pa.array(values, payload.type))
    return batch


def _parsed(content: bytes | str | None, type: pa.StructType) -> dict[str, Any] | None:
    """The object in a payload; None where it holds none. Deployed peers end JSON with NUL."""
    if content is None or len(content) > MAX_OCTETS:
        return None
    try:
        text = content.decode("utf-8") if isinstance(content, bytes) else content
        value = json.loads(text.rstrip("\0"))
    except (ValueError, RecursionError):
        return None
    return {field.name: _property(value, field) for field in type} if isinstance(value, dict) else None


class _Misfit(ValueError):
    """A value that is not of its type."""


def _fitted(value: Any, type: pa.DataType) -> Any:
    """A value as its type has it; a list with one item that is none of it is none as a whole, as on Spark.

    Raises:
        _Misfit: it is of another type.
    """
    match type:
        case _ if value is None:
            return None
        case pa.StructType() if isinstance(value, dict):
            return {field.name: _property(value, field) for field in type}
        case pa.ListType() if isinstance(value, list):
            return [_fitted(item, type.value_type) for item in value]
        case pa.StructType() | pa.ListType():
            raise _Misfit
    return _scalar(value, type)


def _property(value: dict[str, Any], field: pa.Field[Any]) -> Any:
    """A property, None where it is not there or not of its type."""
    try:
        return _fitted(value.get(field.name), field.type)
    except _Misfit:
        return None


def _scalar(value: Any, type: pa.DataType) -> Any:
    if type == pa.string():
        is_text = isinstance(value, str)
        return value if is_text else json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    if isinstance(value, bool):
        if type == pa.bool_():
            return value
    elif type == pa.int64():
        if isinstance(value, int) and -(2**63) <= value < 2**63:
            return value
    elif type == pa.float64() and isinstance(value, int | float):
        return float(value)
    raise _Misfit
