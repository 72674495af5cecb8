"""Opening of Spark sessions: quiet, local by default, with this Python interpreter.

Users of the pipeline do not need Spark's output. The Java process writes to a log file
(`specwire.runtime.spark.session.java`). If a job fails, the error names the file; otherwise it is
removed.

These settings were measured. Batches of at most 50,000 rows are best for `mapInArrow`. They are
bounded in octets too, because one message may have a quarter of a megabyte.
`arrow.compression.codec` stays `none` (lz4 hangs). On a local master Spark uses 127.0.0.1, and its
workers run this interpreter without the working directory on their path. On a cluster all other
settings are those of its `spark-defaults.conf`.
"""

from __future__ import annotations

import os
import shutil
import socket
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from pyspark import SparkConf
from pyspark.sql import SparkSession

from specwire.runtime.spark.cluster.package import PYTHON, read_package
from specwire.runtime.spark.errors import JobError
from specwire.runtime.spark.session.executors import driver_python, ship_packages, shipping_settings
from specwire.runtime.spark.session.java import as_job_errors, changed_environment, java_process, quiet_driver
from specwire.runtime.spark.session.target import JAVA_VERSION, LOCAL, Target, find_jar, find_java

SETTINGS: Mapping[str, str] = {
    "spark.app.name": "specwire",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "50000",
    "spark.sql.execution.arrow.maxBytesPerBatch": str(64 << 20),
    # If on, Spark converts the rows of a Parquet scan to columns and back before a function of
    # arrays, which is two fifths of the work. Only sources that return Arrow columns gain.
    "spark.sql.execution.arrow.pythonUDF.columnarInput.enabled": "false",
    # If on, Python calls Java four times for each column expression, to record its line of code.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    # The default, INT96, has no statistics, so no row group is skipped by time.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
}

LOCAL_SETTINGS: Mapping[str, str] = {
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "2g",
    # -DontCompileHugeMethods: otherwise Java does not compile methods of more than 8000 octets.
    # Spark's method for a protocol with many fields is longer, and takes four times as long.
    # -ClipInlining: otherwise Java stops inlining into a method that has become that long.
    # G1HeapRegionSize: with 2 GiB, regions have 1 MiB. Objects of more than half a region, such as
    # buffers of batches, are then allocated in the old generation and cause earlier collections.
    # The user's options come after these.
    "spark.driver.defaultJavaOptions": "-XX:-DontCompileHugeMethods -XX:-ClipInlining -XX:G1HeapRegionSize=16m",
    "spark.sql.shuffle.partitions": "4",
}

SHORT = Path("/tmp")
LONGEST = 61
"""Maximum length in octets of the name of a folder with sockets.

A socket's name takes 43 octets after it; every system allows 104 in total.
"""

_OTHER_SESSIONS: Mapping[str, str | None] = {"SPARK_REMOTE": None, "SPARK_CONNECT_MODE_ENABLED": None}
"""Variables that make PySpark's functions use Spark Connect."""


@contextmanager
def open_session(
    target: Target | str | None = None, settings: Mapping[str, str] | None = None
) -> Iterator[SparkSession]:
    """Yield a session for the time of a block, then stop it.

    `target` is a Target or a master URL; `settings` override those of this module. Paths passed to
    Spark must be absolute, because with a package, Java works in a separate folder. Raises JobError
    if Java is missing, Spark does not start or a Connect server does not answer. Raises InputError
    for an invalid target, and if this program has another session. Errors of Spark inside the block are raised as JobError, with the place
    to look.
    """
    where = target if isinstance(target, Target) else Target(master=target)
    if where.remote is not None:
        from specwire.runtime.spark.session.connect import open_remote

        opened = open_remote(where.remote, where.package, {**SETTINGS, **(settings or {})})
    else:
        opened = _open_classic(where, settings or {})
    with opened as session:
        yield session


@contextmanager
def _open_classic(target: Target, settings: Mapping[str, str]) -> Iterator[SparkSession]:
    java = find_java()
    if java is None:
        raise JobError(
            f"Spark needs Java {JAVA_VERSION} or newer: install it (on Debian openjdk-17-jre-headless) "
            "or set JAVA_HOME"
        )
    package = read_package(target.package) if target.package is not None else None
    with ExitStack() as stack:
        log = stack.enter_context(_java_log())
        place = "Spark's log is where spark-submit writes" if target.submitted else f"Spark's log: {log}"
        stack.enter_context(changed_environment(_OTHER_SESSIONS))
        folder = stack.enter_context(driver_python()) if package else None
        own = stack.enter_context(_own_files(target))
        conf = _configure(target, {**own, **shipping_settings(package), **settings})
        environment = _worker_environment(java, target)
        stack.enter_context(quiet_driver())
        stack.enter_context(as_job_errors(place, log))
        context = stack.enter_context(java_process(conf, environment, log, folder))
        session = SparkSession(context)
        stack.callback(_stop, session)
        # Again, because this one converts errors while Java runs: only then they can be read.
        stack.enter_context(as_job_errors(place, log))
        ship_packages(session)
        yield session


@contextmanager
def _java_log() -> Iterator[Path]:
    """Yield a log file for Java's output; it is removed unless a JobError names it."""
    with tempfile.NamedTemporaryFile(prefix="specwire-spark-", suffix=".log", delete=False) as file:
        log = Path(file.name)
    with ExitStack() as cleanup:
        cleanup.callback(log.unlink, missing_ok=True)
        try:
            yield log
        except JobError:
            cleanup.pop_all()
            raise


@contextmanager
def _own_files(target: Target) -> Iterator[dict[str, str]]:
    """Yield the settings for a session's files: the Java decoders, sockets, and Spark's own files.

    The jar is a copy, because it may be compiled again while Java has it open. `spark-submit` names
    the jar on its command line.
    """
    if target.submitted:
        yield {}
        return
    with session_folder() as folder:
        settings: dict[str, str] = {}
        jar = find_jar()
        if jar is not None:
            settings["spark.jars"] = Path(shutil.copy(jar, folder)).as_uri()
        if target.local:
            settings["spark.sql.warehouse.dir"] = str(folder / "warehouse")
            settings |= socket_settings(folder)
        yield settings


def _stop(session: SparkSession) -> None:
    with suppress(ConnectionError):
        session.stop()


def _configure(target: Target, settings: Mapping[str, str]) -> SparkConf:
    chosen = {**SETTINGS, **(LOCAL_SETTINGS if target.local else {}), **settings}
    if not target.submitted:
        chosen["spark.master"] = target.master or LOCAL
    conf = SparkConf(loadDefaults=False)
    conf.setAll(list(chosen.items()))
    return conf


def _worker_environment(java: Path, target: Target) -> dict[str, str | None]:
    """Return the environment variables of the Java process and its workers; None removes one."""
    if target.submitted:
        return {}
    python = PYTHON if target.package else sys.executable
    if not target.local:
        return {"PYSPARK_PYTHON": python if target.package else os.environ.get("PYSPARK_PYTHON", python)}
    return {
        "PYSPARK_PYTHON": python,
        "PYTHONSAFEPATH": "1",
        # Otherwise Spark resolves this machine's name, which the resolver may not know.
        "SPARK_LOCAL_HOSTNAME": "localhost",
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_HOME": None,
        "PYSPARK_SUBMIT_ARGS": None,
        "JAVA_HOME": str(java.resolve().parent.parent),
    }


@contextmanager
def session_folder() -> Iterator[Path]:
    """Yield a folder of mode 0700: in /tmp if sockets would have too long names elsewhere."""
    prefix = "specwire-"
    usual = Path(tempfile.gettempdir(), f"{prefix}12345678")
    short = SHORT if len(os.fsencode(usual)) > LONGEST and os.access(SHORT, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix=prefix, dir=short, ignore_cleanup_errors=True) as name:
        yield Path(name)


def socket_settings(folder: Path) -> dict[str, str]:
    """Return the settings that connect Java and its Python workers by Unix domain sockets.

    On Linux 6.18 a TCP connection sometimes hangs for ever when a worker receives some megabytes
    and returns as many. Both ends have full queues, and the worker's end drops the segments that
    Java sends, including window updates (since 6.17, Linux drops segments beyond the window).

    Spark trusts every process that can reach such a socket as its worker, so `folder` has mode
    0700. If its name is too long, or on Windows, there are no settings, and Spark uses TCP.
    """
    if not hasattr(socket, "AF_UNIX") or len(os.fsencode(folder)) > LONGEST:
        return {}
    return {
        "spark.python.unix.domain.socket.enabled": "true",
        "spark.python.unix.domain.socket.dir": str(folder),
    }


@contextmanager
def changed_settings(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Change settings of a running session for a block, also for other jobs of the session."""
    before = {name: spark.conf.get(name, None) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, earlier in before.items():
            if earlier is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, earlier)
