"""Back ends that decode frames on Spark: Java and Arrow, and Python as the reference of tests.

All give the same rows, errors included. Modes, options and tables are expressions over that one
result.
"""

from __future__ import annotations

import logging
from typing import Protocol

from pyspark.sql import Column, SparkSession

from specwire.runtime.spark.errors import InputError

BACKENDS = ("jvm", "arrow", "python")
"""Names of the back ends, in the order in which ``auto`` tries them."""

_log = logging.getLogger(__name__)


class Backend(Protocol):
    """Decoder from a column of frames to a column of structs."""

    def available(self, spark: SparkSession, protocol: str) -> str | None:
        """Return None if the back end can decode `protocol` in this session, else the reason."""
        ...

    def column(self, value: Column, protocol: str, sender: Column | None) -> Column:
        """Return a struct of decoded columns (`shape.struct_type`), null where `value` is null.

        Args:
            value: BINARY (a message of one frame) or ARRAY<BINARY>.
            protocol: the package.
            sender: role letter of the sender, null or empty if unknown; not used if the octets
                alone identify messages.

        Spark evaluates the column once for each row and each reference to it in a query.
        """
        ...


def find_backend(name: str, spark: SparkSession, protocol: str) -> Backend:
    """Return the back end `name`; for ``auto``, the first available one.

    The choice for ``auto`` is logged with the reason. Raises InputError if there is no such back
    end or it cannot be used here.
    """
    if name == "auto":
        return _first_available(spark, protocol)
    if name == "sql":
        raise InputError("the backend 'sql' was removed: use 'jvm' (Java) or 'arrow'")
    if name not in BACKENDS:
        raise InputError(f"there is no backend {name!r}; the known ones are auto, {', '.join(BACKENDS)}")
    backend = load_backend(name)
    if reason := backend.available(spark, protocol):
        raise InputError(f"the backend {name!r} cannot decode {protocol} here: {reason}")
    return backend


def load_backend(name: str) -> Backend:
    """Return the back end of a known name, available or not."""
    # A client of Spark Connect may lack what another back end imports.
    if name == "jvm":
        from specwire.runtime.spark.decoding.jvm import JVM

        return JVM
    from specwire.runtime.spark.decoding.arrow import ARROW, PYTHON

    return ARROW if name == "arrow" else PYTHON


def _first_available(spark: SparkSession, protocol: str) -> Backend:
    reasons: list[str] = []
    for name in BACKENDS:
        backend = load_backend(name)
        reason = backend.available(spark, protocol)
        if reason is None:
            why = f"; {'; '.join(reasons)}" if reasons else ""
            _log.info("%s is decoded by the backend %s%s", protocol, name, why)
            return backend
        reasons.append(f"not by {name}: {reason}")
    raise InputError(f"no backend can decode {protocol} here: {'; '.join(reasons)}")
