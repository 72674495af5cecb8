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
from specwire.runtime.spark.session.executors import ship_packages, shipping_settings, stand_in_python
from specwire.runtime.spark.session.java import as_job_errors, changed_environment, java_process, quiet_driver
from specwire.runtime.spark.session.target import JAVA_VERSION, LOCAL, Target, find_jar, find_java

SETTINGS: Mapping[str, str] = {
    "spark.app.name": "specwire",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "50000",
    "spark.sql.execution.arrow.maxBytesPerBatch": str(64 << 20),
    # Or a function of arrays right above a Parquet scan has its rows made into columns and back
    # once more, which is two fifths of all that is done then; only sources that give Arrow's own
    # columns gain by it.
    "spark.sql.execution.arrow.pythonUDF.columnarInput.enabled": "false",
    # Or Python asks Java four times at each column that is named, to tell where in a program it
    # was.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    # The default, INT96, has no statistics, so nothing is skipped by time.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
}

LOCAL_SETTINGS: Mapping[str, str] = {
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "2g",
    # Otherwise Java does not compile methods of more than 8000 octets. The method that Spark
    # generates for a query over a protocol with many fields is longer, and then takes four times as
    # long. Also, Java stops inlining into a method that inlining has made so long, even for methods
    # of one instruction. With 2 GiB, the G1 collector has regions of 1 MiB. Objects of more than
    # half a region, such as pages of a sort and buffers of batches, are old from the start, and
    # each brings the next scan of the old generation forward. (The user's options come after these;
    # other collectors ignore this option.)
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
    for an invalid target. Errors of Spark inside the block are raised as JobError, with the place
    to look.
    """
    where = target if isinstance(target, Target) else Target(master=target)
    if where.remote is not None:
        from specwire.runtime.spark.session.connect import open_remote

        with open_remote(where.remote, where.package, {**SETTINGS, **(settings or {})}) as session:
            yield session
        return
    with _open_classic(where, settings or {}) as session:
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
        folder = stack.enter_context(stand_in_python()) if package else None
        own = stack.enter_context(_own_files(target))
        conf = _configure(target, {**own, **shipping_settings(package), **settings})
        environment = _worker_environment(java, target)
        stack.enter_context(quiet_driver())
        stack.enter_context(as_job_errors(place, log))
        context = stack.enter_context(java_process(conf, environment, log, folder))
        session = SparkSession(context)
        stack.callback(_stop, session)
        # Errors are converted here too, because Spark's errors can be read only while Java runs.
        with as_job_errors(place, log):
            ship_packages(session)
            yield session


@contextmanager
def _java_log() -> Iterator[Path]:
    """Yield a log file for Java's output; it is kept if a JobError names it."""
    descriptor, name = tempfile.mkstemp(prefix="specwire-spark-", suffix=".log")
    os.close(descriptor)
    log = Path(name)
    try:
        yield log
    except JobError:
        raise
    except BaseException:
        log.unlink(missing_ok=True)
        raise
    log.unlink(missing_ok=True)


@contextmanager
def _own_files(target: Target) -> Iterator[dict[str, str]]:
    """Yield the settings for a session's files: the Java decoders, sockets, and Spark's own files.

    The jar is a copy, because it may be compiled again while Java has it open. With `spark-submit`,
    its command line names the jar.
    """
    if target.submitted:
        yield {}
        return
    with tempfile.TemporaryDirectory(prefix="specwire-session-", ignore_cleanup_errors=True) as name:
        settings: dict[str, str] = {}
        jar = find_jar()
        if jar is not None:
            settings["spark.jars"] = Path(shutil.copy(jar, name)).as_uri()
        if not target.local:
            yield settings
            return
        settings["spark.sql.warehouse.dir"] = str(Path(name, "warehouse"))
        with socket_settings(Path(name)) as sockets:
            yield {**settings, **sockets}


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
def socket_settings(own: Path) -> Iterator[Mapping[str, str]]:
    """Yield the settings that connect Java and its Python workers by Unix domain sockets in `own`.

    On Linux 6.18 a TCP connection rarely hangs for ever when a worker receives some megabytes and
    returns as many. Both ends have full queues, and the worker's end drops the segments that Java
    sends, including window updates. Since 6.17, Linux drops segments beyond the window; its
    counters confirmed this. The hang was not reproduced with plain sockets.

    Spark trusts every process that can reach such a socket as its worker, so `own` has mode 0700.
    If its name is too long, a folder in /tmp is used, which exists for the time of the block. If
    neither is usable, no setting is returned and Spark uses TCP.
    """
    enabled = {"spark.python.unix.domain.socket.enabled": "true"}
    setting = "spark.python.unix.domain.socket.dir"
    if not hasattr(socket, "AF_UNIX"):
        yield {}
    elif len(os.fsencode(own)) <= LONGEST:
        yield {**enabled, setting: str(own)}
    elif os.access(SHORT, os.W_OK):
        with tempfile.TemporaryDirectory(prefix="specwire-", dir=SHORT, ignore_cleanup_errors=True) as name:
            yield {**enabled, setting: name}
    else:
        yield {}


@contextmanager
def changed_settings(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Change settings of a running session, and restore them afterwards.

    Other jobs of the session are affected, too.
    """
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
