"""The generated packages by name, as far as Spark needs them: columns for the workers, schemas for the driver."""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
from collections.abc import Mapping
from typing import Any, Protocol, cast

import pyarrow as pa
from pyspark.sql.types import StructType

import specwire.generated
from specwire.runtime.spark.errors import InputError


class Columns(Protocol):
    """The generated module ``columns``."""

    SCHEMA: pa.Schema

    def decode(self, array: pa.Array[Any], senders: pa.Array[Any], /) -> pa.RecordBatch:
        """Decode an array of messages, each a list of frames sent by a role, into one row each."""


class Schemas(Protocol):
    """The generated module ``schema``."""

    SCHEMAS: Mapping[str, StructType]
    DECODED: StructType


def known_protocols() -> tuple[str, ...]:
    """Return the names of the generated packages that can decode on Spark, sorted."""
    packages = pkgutil.iter_modules(specwire.generated.__path__)
    names = (package.name for package in packages if package.ispkg)
    return tuple(sorted(name for name in names if importlib.util.find_spec(_module(name, "columns"))))


def load_columns(protocol: str) -> Columns:
    """Return the column decoder of a protocol; InputError where there is none."""
    return cast(Columns, _load(protocol, "columns"))


def load_schemas(protocol: str) -> Schemas:
    """Return the Spark schemas of a protocol; InputError where there are none."""
    return cast(Schemas, _load(protocol, "schema"))


def role_name(protocol: str, letter: str) -> str:
    """Return what a role's letter stands for (``C`` is the client), the letter itself where that is not known."""
    roles: Mapping[str, str] = getattr(_load(protocol, "machine"), "ROLES", {})
    return roles.get(letter, letter)


def _module(protocol: str, part: str) -> str:
    return f"specwire.generated.{protocol}.{part}"


def _load(protocol: str, part: str) -> object:
    known = known_protocols()
    if protocol not in known:
        raise InputError(f"there is no protocol {protocol!r}; the known ones are {', '.join(known)}")
    return importlib.import_module(_module(protocol, part))
