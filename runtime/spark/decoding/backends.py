"""What decodes frames on Spark: several backends, one result.

A backend is a module with the two functions of `Backend`. What it is given has any columns, then ``_frames``;
what it returns has those columns as they were, but for ``_frames``, then exactly the columns of the
generated ``schema.DECODED``, in that order. One of the columns is called `noted_name(protocol, "sender")`: the
letter of the role that sent the message, null or empty where nobody knows. All backends give the same rows,
errors included; modes, options and tables are made of that one result.

A backend's module is imported when it is asked for, because one may need what is not installed.
"""

from __future__ import annotations

import importlib
import logging
from collections.abc import Mapping
from types import MappingProxyType
from typing import Protocol, cast, runtime_checkable

from pyspark.sql import DataFrame, SparkSession

from specwire.runtime.spark.errors import InputError

BACKENDS: Mapping[str, str] = MappingProxyType(
    {
        "jvm": "specwire.runtime.spark.decoding.jvm",
        "arrow": "specwire.runtime.spark.decoding.arrow",
        "python": "specwire.runtime.spark.decoding.python",
    }
)
"""The modules by the names of their backends."""

AUTO = ("jvm", "arrow", "python")
"""What ``auto`` tries, in this order."""

_log = logging.getLogger(__name__)


class Backend(Protocol):
    """A module that decodes."""

    def available(self, spark: SparkSession, protocol: str) -> str | None:
        """Return None where the backend can decode `protocol` in this session, else the reason in one sentence."""
        ...

    def decode(self, frame: DataFrame, protocol: str) -> DataFrame:
        """Return `frame` decoded; its last column, ``_frames`` (array<binary>), gives way to `schema.DECODED`."""
        ...


@runtime_checkable
class CountingBackend(Protocol):
    """A backend that knows the octets of all frames without looking at them once more."""

    def decode_counted(self, frame: DataFrame, protocol: str, octets: str) -> DataFrame:
        """Do as `Backend.decode` does, with the octets in a column of that name before the decoded ones."""
        ...


def find_backend(name: str, spark: SparkSession, protocol: str) -> Backend:
    """Return the backend of a name, or the best one there is for ``auto``, which is logged with the reason.

    Raises InputError where there is no such backend or it cannot be used here.
    """
    if name == "auto":
        return _best(spark, protocol)
    if name == "sql":
        raise InputError("the backend 'sql' was removed: use 'jvm' (Java) or 'arrow'")
    if name not in BACKENDS:
        raise InputError(f"there is no backend {name!r}; the known ones are auto, {', '.join(BACKENDS)}")
    backend = load_backend(name)
    if reason := backend.available(spark, protocol):
        raise InputError(f"the backend {name!r} cannot decode {protocol} here: {reason}")
    return backend


def load_backend(name: str) -> Backend:
    """Return the backend of a known name, usable here or not."""
    return cast(Backend, importlib.import_module(BACKENDS[name]))


def _best(spark: SparkSession, protocol: str) -> Backend:
    reasons: list[str] = []
    for name in AUTO:
        backend = load_backend(name)
        reason = backend.available(spark, protocol)
        if reason is None:
            why = f"; {'; '.join(reasons)}" if reasons else ""
            _log.info("%s is decoded by the backend %s%s", protocol, name, why)
            return backend
        reasons.append(f"not by {name}: {reason}")
    raise InputError(f"no backend can decode {protocol} here: {'; '.join(reasons)}")
