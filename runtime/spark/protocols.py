"""Typed access to the parts of generated packages that Spark needs.

`specwire.runtime.packages` finds the packages, on the driver and in Python workers. Each function
here raises InputError if the package, or the part, is missing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, cast

import pyarrow as pa
from pyspark.sql.types import StructType

from specwire.generated.columns.rows import Attributes
from specwire.generated.layout import ProtocolLayout
from specwire.generated.messages import Message
from specwire.runtime.package_search import PackageError
from specwire.runtime.packages import REGISTRY, has_part, load_part, package_names
from specwire.runtime.spark.errors import InputError


class Columns(Protocol):
    """Generated module ``columns``."""

    SCHEMA: pa.Schema
    ATTRIBUTES: Attributes

    def decode(self, array: pa.Array[Any], senders: pa.Array[Any], /) -> pa.RecordBatch:
        """Decode an array of messages, each a list of frames sent by a role, into one row each."""

    def encode(self, batch: pa.RecordBatch, /) -> pa.ListArray[Any]:
        """Return the frames of each row."""


class Codec(Protocol):
    """Generated module ``codec``."""

    def decode(self, frames: Sequence[bytes], /) -> Message:
        """Decode one message; takes a `sender`, too, if the octets alone do not identify messages."""


class Schemas(Protocol):
    """Generated module ``schema``."""

    SCHEMAS: Mapping[str, StructType]
    DECODED: StructType
    TABLES: Mapping[str, StructType]


class Machine(Protocol):
    """Generated module ``machine``; without a dialog it has no ``DIALOGS``."""

    TIMERS: Mapping[str, float]


def known_protocols() -> tuple[str, ...]:
    """Return the names of the protocols whose packages can decode on Spark, sorted."""
    try:
        return tuple(name for name in package_names() if has_part(name, "columns"))
    except PackageError as error:
        raise InputError(str(error)) from error


def edition_packages(protocol: str) -> tuple[str, ...]:
    """Return the names of the packages of a protocol's editions, the default first."""
    return tuple(package.name for package in REGISTRY.editions(protocol) if package.has("columns"))


def load_columns(protocol: str) -> Columns:
    """Return the column decoder of a protocol."""
    return cast(Columns, _load(protocol, "columns"))


def load_codec(protocol: str) -> Codec:
    """Return the decoder of single messages of a protocol."""
    return cast(Codec, _load(protocol, "codec"))


def load_schemas(protocol: str) -> Schemas:
    """Return the Spark schemas of a protocol."""
    return cast(Schemas, _load(protocol, "schema"))


def load_layout(protocol: str) -> ProtocolLayout:
    """Return the layout of the messages of a protocol."""
    return cast(ProtocolLayout, _load(protocol, "layout").LAYOUT)


def load_machine(protocol: str) -> Machine:
    """Return the dialogs and timers of a protocol."""
    return cast(Machine, _load(protocol, "machine"))


def role_name(protocol: str, letter: str) -> str:
    """Return the name of a role (``C`` is the client), or the letter if the name is unknown."""
    return _roles(protocol).get(letter, letter)


def role_letters(protocol: str) -> tuple[str, ...]:
    """Return the letters of a protocol's roles; none if it is unknown."""
    return tuple(_roles(protocol))


def _roles(protocol: str) -> Mapping[str, str]:
    return getattr(load_machine(protocol), "ROLES", {}) if has_part(protocol, "machine") else {}


def _load(protocol: str, part: str) -> Any:
    try:
        return load_part(protocol, part)
    except PackageError as error:
        raise InputError(str(error)) from error
