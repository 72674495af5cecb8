"""Java back end: generated functions that decode inside Spark's Java process.

Neither frames nor fields are sent to Python. The classes are in a jar
(`specwire.runtime.spark.session.target`). A session has it from its start or receives it here. The
classes are a catalog of functions: ``specwire.from_flux(value)`` and so on. Spark passes its
internal values to them. For functions of `registerJavaFunction` it converts every value, which
takes longer than decoding.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from weakref import WeakKeyDictionary

from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # py4j has no types
from pyspark.errors import PySparkException
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from specwire.runtime.package_search import PackageError, identifier
from specwire.runtime.packages import find_package
from specwire.runtime.spark.decoding.compile_jar import package_jar
from specwire.runtime.spark.decoding.options import struct_type
from specwire.runtime.spark.errors import InputError
from specwire.runtime.spark.protocols import load_layout
from specwire.runtime.spark.session.executors import shipping_folder
from specwire.runtime.spark.session.java import describe_failure
from specwire.runtime.spark.session.target import JAR, jar_trouble, sources_digest

CATALOG = "specwire"
"""Name of the catalog of functions in a session."""

_TYPES: WeakKeyDictionary[SparkSession, dict[str, str]] = WeakKeyDictionary()
"""Cache of the result types of each session's functions, because asking Spark is slow."""


class JavaBackend:
    """Back end that calls the functions of the jar."""

    def available(self, spark: SparkSession, protocol: str) -> str | None:
        """See `specwire.runtime.spark.decoding.backends.Backend`."""
        try:
            if reason := jar_trouble():
                return reason
            package = find_package(protocol)
            jar, reason = package_jar(package) if package.origin else (None, "")
            if reason:
                return reason
            if _result_type(spark, protocol, jar) != struct_type(protocol).simpleString():
                return (
                    "the session has Java decoders of another version: open a new session without their jar"
                )
        except PackageError as error:
            raise InputError(str(error)) from error
        except (PySparkException, Py4JError) as error:
            return f"Spark cannot load the Java decoders: {describe_failure(error)}"
        except OSError as error:
            return f"{JAR} cannot be passed to Spark: {error}"
        return None

    def column(self, value: Column, protocol: str, sender: Column | None) -> Column:
        """See `specwire.runtime.spark.decoding.backends.Backend`."""
        senders = [sender] if sender is not None and load_layout(protocol).takes_sender else []
        return F.call_function(f"{CATALOG}.from_{identifier(find_package(protocol).name)}", value, *senders)


JVM = JavaBackend()


def _result_type(spark: SparkSession, protocol: str, jar: Path | None) -> str:
    """Return the type of a protocol's function; register the functions in this session.

    `jar` contains the decoder of a package that does not come with specwire.

    Raises:
        PySparkException, Py4JError: Spark cannot load the function.
        OSError: no jar can be passed to Spark.
    """
    known = _TYPES.setdefault(spark, {})
    if protocol in known:
        return known[protocol]
    spark.conf.set(f"spark.sql.catalog.{CATALOG}", "specwire.generated.java.Functions")
    nothing = JVM.column(F.lit(None).cast("array<binary>"), protocol, None)
    if jar is not None:
        _add_jar(spark, jar)
    try:
        found = spark.range(0).select(nothing).schema
    except (PySparkException, Py4JError):
        # The session was opened without the jar.
        _add_jar(spark, JAR)
        found = spark.range(0).select(nothing).schema
    return known.setdefault(protocol, found[0].dataType.simpleString())


def _add_jar(spark: SparkSession, original: Path) -> None:
    """Add a jar to a running session.

    A copy is added, because ``ADD JAR`` follows links, loses blanks and quotes, and ignores a jar
    whose name it already has.
    """
    name = f"specwire-decoders-{sources_digest()[:16]}.jar" if original == JAR else original.name
    folder = shipping_folder()
    if not re.fullmatch(r"[\w./-]+", str(folder), re.ASCII):
        raise OSError(
            f"Spark takes no jar from {folder}: set TMPDIR to a folder whose name has letters and digits only"
        )
    jar = folder / name
    if not jar.exists():
        shutil.copyfile(original, jar)
    if isinstance(spark, SparkSession):
        spark.sql(f"ADD JAR {jar}")
    else:
        spark.addArtifacts(str(jar))
