"""The JVM backend: generated Java functions, which decode inside Spark's own process.

Neither frames nor fields go to Python. The classes are in a jar (`specwire.runtime.spark.decoding.jar`), which a
session either has from its start or is given here. They are a catalog of functions, ``specwire.decode_flux(frames)``
and so on, which Spark calls with values as it has them itself: functions of `registerJavaFunction` have every value
converted on the way in and out, which takes longer than the decoding. Each returns one struct, and is called once
for a message however many fields are used and whatever is filtered above.
"""

from __future__ import annotations

import atexit
import re
import shutil
import tempfile
import zipfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from weakref import WeakKeyDictionary

from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # py4j has no types
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StructField, StructType

from specwire.runtime.packages import PackageError, find_package
from specwire.runtime.spark.decoding.jar import JAR, decoder_class, jar_trouble, package_jar, sources_digest
from specwire.runtime.spark.decoding.noted import FRAMES, noted_name
from specwire.runtime.spark.errors import InputError
from specwire.runtime.spark.protocols import load_layout, load_schemas
from specwire.runtime.spark.session.failures import describe_failure

CATALOG = "specwire"
"""The name of the catalog of functions in a session."""

_TYPES: WeakKeyDictionary[SparkSession, dict[str, str]] = WeakKeyDictionary()
"""For each session, what the functions give that it was asked for: Spark takes a while to say so."""

_DECODED = "_decoded"
_OCTETS = "_octets"


def available(spark: SparkSession, protocol: str) -> str | None:
    """See `specwire.runtime.spark.decoding.backends.Backend`."""
    try:
        if reason := jar_trouble():
            return reason
        package = find_package(protocol)
        jar, reason = package_jar(package) if package.origin else (None, "")
        if reason:
            return reason
        if jar is None and decoder_class(protocol, JAR) is None:
            return f"{JAR} has no decoder for {protocol}: run `specwire generate`, then `make jar`"
        counted = StructType([*load_schemas(protocol).DECODED, StructField(_OCTETS, LongType())])
        if _returned_type(spark, protocol, jar) != counted.simpleString():
            return "the session has Java decoders of another version: open it anew, without their jar"
    except PackageError as error:
        raise InputError(str(error)) from error
    except (PySparkException, Py4JError) as error:
        return f"Spark cannot load the Java decoders: {describe_failure(error)}"
    except (OSError, zipfile.BadZipFile) as error:
        return f"{JAR} cannot be given to Spark: {error}"
    return None


def decode(frame: DataFrame, protocol: str) -> DataFrame:
    """See `specwire.runtime.spark.decoding.backends.Backend`; InputError where it cannot be used."""
    return _decode(frame, protocol, {})


def decode_counted(frame: DataFrame, protocol: str, octets: str) -> DataFrame:
    """See `specwire.runtime.spark.decoding.backends.CountingBackend`; InputError where it cannot be used."""
    counted = F.coalesce(F.col(_DECODED)[_OCTETS], F.lit(0).cast("long"))  # never null, and said to be so
    return _decode(frame, protocol, {octets: counted})


def _decode(frame: DataFrame, protocol: str, more: Mapping[str, Column]) -> DataFrame:
    if reason := available(frame.sparkSession, protocol):
        raise InputError(f"the backend 'jvm' cannot decode {protocol} here: {reason}")
    decoded = load_schemas(protocol).DECODED
    others = [name for name in frame.columns if name != FRAMES]
    sender = F.col(noted_name(protocol, "sender"))
    rows = frame.select(
        *(F.col(name) for name in others), _call(protocol, F.col(FRAMES), sender).alias(_DECODED)
    )
    fields = (F.col(_DECODED)[f.name].alias(f.name, metadata=f.metadata) for f in decoded)
    added = (column.alias(name) for name, column in more.items())
    return rows.select(*(F.col(name) for name in others), *added, *fields)


def _call(protocol: str, frames: Column, sender: Column) -> Column:
    arguments = (frames, sender) if _by_sender(protocol) else (frames,)
    return F.call_function(f"{CATALOG}.decode_{protocol}", *arguments)


def _returned_type(spark: SparkSession, protocol: str, jar: Path | None) -> str:
    """Return what a protocol's function gives in this session, which gets to know it.

    `jar` has the decoder where ours has not.

    Raises:
        PySparkException, Py4JError: Spark cannot load it.
        OSError: there is no jar that can be given to Spark.
    """
    known = _TYPES.setdefault(spark, {})
    if protocol in known:
        return known[protocol]
    spark.conf.set(f"spark.sql.catalog.{CATALOG}", "specwire.generated.java.Functions")
    nothing = _call(protocol, F.lit(None).cast("array<binary>"), F.lit(None).cast("string"))
    if jar is not None:
        _add_jar(spark, jar)
    try:
        found = spark.range(0).select(nothing).schema
    except (PySparkException, Py4JError):
        # The session was opened without the jar.
        _add_jar(spark, JAR)
        found = spark.range(0).select(nothing).schema
    return known.setdefault(protocol, found[0].dataType.simpleString())


def _by_sender(protocol: str) -> bool:
    """Whether who sent frames may decide which message they are: the function takes the sender then, too."""
    return load_layout(protocol).takes_sender


def _add_jar(spark: SparkSession, original: Path) -> None:
    """Give a jar to a running session."""
    name = f"specwire-decoders-{sources_digest()[:16]}.jar" if original == JAR else original.name
    jar = _plain_copy(original, name)
    if isinstance(spark, SparkSession):
        spark.sql(f"ADD JAR {jar}")
    else:
        spark.addArtifacts(str(jar))


@cache
def _plain_copy(original: Path, name: str) -> Path:
    """Return a copy of a jar under a name that lasts as long as this process, in a place that Spark can spell.

    ``ADD JAR`` follows links, loses blanks and quotes on the way, and ignores a jar of a name that it has seen.
    """
    folder = Path(tempfile.mkdtemp(prefix="specwire-jar-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    if not re.fullmatch(r"[\w./-]+", str(folder), re.ASCII):
        raise OSError(
            f"Spark takes no jar from {folder}: set TMPDIR to a folder whose name has letters and digits only"
        )
    return Path(shutil.copyfile(original, folder / name))
