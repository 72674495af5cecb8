"""A session behind a Connect server: reading, decoding, errors, files, and a package shipped to it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from msgspec import structs
from pyspark.sql import Row
from pyspark.sql import functions as F

from specwire.runtime.spark import decode, encode, from_specwire, read, register
from specwire.runtime.spark.cluster.package import ARCHIVE, Package
from specwire.runtime.spark.decoding.backends import BACKENDS, load_backend
from specwire.runtime.spark.errors import InputError, JobError
from specwire.runtime.spark.pipeline.store import Store
from specwire.runtime.spark.session.executors import check_shared
from specwire.runtime.spark.session.opening import open_session
from specwire.runtime.spark.session.target import Target
from tests.runtime.spark.captures import (
    CHEEZBURGER,
    NOM,
    SHORT_NOM,
    write_capture,
)
from tests.runtime.spark.cluster.servers import SEGMENT, Server
from tests.runtime.spark.outputs import Output

pytestmark = [pytest.mark.spark, pytest.mark.slow]

LIMIT_S = 600


def test_a_session_reads_decodes_and_writes_frames_again(server: Server, tmp_path: Path) -> None:
    """By our data source and by every backend; the process is as before afterwards."""
    frames = [("C", NOM), ("S", CHEEZBURGER), ("C", SHORT_NOM)]
    capture = write_capture(tmp_path / "capture", frames)
    with open_session(Target(remote=server.url)) as spark:
        assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
        register(spark)
        messages = spark.read.format("specwire").load(str(capture)).select("_message").collect()
        assert [row[0] for row in messages] == ["Nom", "Cheezburger", None]
        captured = read(spark, capture)
        for name in BACKENDS:
            if load_backend(name).available(spark, "filemq") is None:
                decoded = decode(captured, "filemq", backend=name)
                again = encode(decoded, "filemq").orderBy("seq").select("frames").collect()
                assert [list(map(bytes, row["frames"])) for row in again[:2]] == [NOM, CHEEZBURGER], name
                column = from_specwire("frames", "filemq", backend=name).alias("m")
                found = (
                    captured.orderBy("seq").select(column).select("m._message", "m._error.field").collect()
                )
                assert list(map(tuple, found)) == [("Nom", None), ("Cheezburger", None), (None, "credit")], (
                    name
                )
        prefix = "specwire." if load_backend("jvm").available(spark, "filemq") is None else "specwire_"
        query = f"SELECT {prefix}from_filemq(X'{NOM[0].hex()}')._message AS name"
        assert spark.sql(query).first() == Row(name="Nom")
    assert "SPARK_CONNECT_MODE_ENABLED" not in os.environ


def test_the_whole_pipeline_gives_what_this_machine_gives(
    server: Server, one_run: Output, tmp_path: Path
) -> None:
    """As its command, in a process that has no Java: the same rows in every table, the same summary."""
    out = tmp_path / "remote"
    command = [sys.executable, "-P", "-m", "specwire.runtime.cli.main", "pipeline", "run", "--json"]
    places = ["--capture", str(one_run.capture), "--out", str(out), "--remote", server.url]
    variables = {"PATH": "/nowhere", "JAVA_HOME": "/nowhere", "HOME": str(tmp_path)}
    ran = subprocess.run(
        [*command, *places], env=variables, capture_output=True, text=True, timeout=LIMIT_S, check=False
    )
    # Three: some messages of the capture have no package.
    assert ran.returncode == 3, ran.stderr
    assert json.loads(ran.stdout)["capture"] == str(one_run.capture)
    here, there = Store(one_run.out).summary(), Store(out).summary()
    assert here is not None and there is not None
    assert structs.replace(there, elapsed_s=0) == structs.replace(here, elapsed_s=0)
    tables_here = read_tables(one_run.out)
    assert "typed/filemq/Nom" in tables_here
    assert read_tables(out) == tables_here


def read_tables(out: Path) -> dict[str, list[str]]:
    """Return the rows of every table of an output folder, in an order that only they decide."""
    folders = [out / "frames", *out.glob("typed/*/*"), *out.glob("answers/*")]
    return {
        folder.relative_to(out).as_posix(): sorted(
            map(repr, ds.dataset(folder, partitioning="hive").to_table().to_pylist())
        )
        for folder in folders
    }


def test_what_spark_raises_becomes_one_sentence(server: Server) -> None:
    """Of a worker, and of the server; both name the server, for its log says more."""

    def fail(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        raise ValueError("no such column")

    address = server.url.removeprefix("sc://")
    with pytest.raises(JobError) as worker, open_session(Target(remote=server.url)) as spark:
        spark.range(1).mapInArrow(fail, "id long").collect()
    assert str(worker.value) == f"ValueError: no such column (Spark Connect server {address})"
    with pytest.raises(JobError) as analysis, open_session(Target(remote=server.url)) as spark:
        spark.range(1).select(F.col("nothing")).collect()
    assert str(analysis.value).startswith("[UNRESOLVED_COLUMN.WITH_SUGGESTION] ")
    assert "\n" not in str(analysis.value)
    assert "SQLSTATE" not in str(analysis.value)
    with pytest.raises(JobError) as ours, open_session(Target(remote=server.url)) as spark:
        register(spark)
        spark.read.format("specwire").option("protocol", "gopher").load("/nowhere").collect()
    assert str(ours.value).startswith("there is no protocol 'gopher'; ")


def test_files_that_both_sides_see_are_no_trouble(server: Server, tmp_path: Path) -> None:
    """And nothing is left of the attempt."""
    segment = tmp_path / "segment"
    segment.write_bytes(b"four")
    target = Target(remote=server.url)
    with open_session(target) as spark:
        check_shared(spark, target, [segment], tmp_path / "not" / "there" / "yet")
    assert [path.name for path in tmp_path.iterdir()] == ["segment"]


def test_files_of_one_side_are_refused_before_work_begins(server: Server) -> None:
    """Folders of one name on two machines; the sentences tell a missing file from another one."""
    if server.apart is None:
        pytest.skip("the server's files cannot be set apart from ours here (unshare --mount)")
    target = Target(remote=server.url)
    ours, only_ours = server.apart / SEGMENT, server.apart / "only-ours"
    for file in (ours, only_ours):
        file.write_text("ours")
    with open_session(target) as spark:
        with pytest.raises(InputError, match=f"{SEGMENT}: Spark sees another file there; .* that path"):
            check_shared(spark, target, [ours], server.apart)
        with pytest.raises(
            InputError, match=r"only-ours: Spark does not see it \(.*PATH_NOT_FOUND.*\); this"
        ):
            check_shared(spark, target, [only_ours], server.apart)
        with pytest.raises(InputError, match="apart: Spark does not see it"):
            check_shared(spark, target, [], server.apart)
    assert sorted(path.name for path in server.apart.iterdir()) == ["only-ours", SEGMENT]


def test_a_package_gives_the_server_our_modules(server: Server, package: Package) -> None:
    """Workers of the session run the archive's Python; the sessions of others do not."""

    def look(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import msgspec

        import specwire

        for _ in batches:
            yield pa.RecordBatch.from_pydict({"file": [msgspec.__file__, specwire.__file__]})

    with open_session(Target(remote=server.url, package=package.folder)) as spark:
        files = [row["file"] for row in spark.range(0, 1, 1, 1).mapInArrow(look, "file string").collect()]
    msgspec_file, specwire_file = files
    site = msgspec_file.removesuffix("msgspec/__init__.py")
    assert site.endswith("/environment/site-packages/")
    assert specwire_file == f"{site}specwire/__init__.py"
    assert package.archive.name == ARCHIVE
