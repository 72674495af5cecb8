"""A session behind a Connect server: reading, decoding, errors, files, and a package shipped to it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import functions as F

from specwire.runtime.spark.cluster.contents import ARCHIVE, Package
from specwire.runtime.spark.decoding.decode import decode
from specwire.runtime.spark.decoding.tables import tables
from specwire.runtime.spark.errors import InputError, JobError
from specwire.runtime.spark.reading.capture import read_capture
from specwire.runtime.spark.session.opening import open_session
from specwire.runtime.spark.session.sharing import check_shared
from specwire.runtime.spark.session.target import Target
from tests.runtime.spark.captures import CHEEZBURGER, NOM, SHORT_NOM, write_capture
from tests.runtime.spark.cluster.servers import SEGMENT, Server

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def test_messages_are_decoded_behind_the_server(server: Server, tmp_path: Path) -> None:
    """Into the rows that a session of this machine gives."""
    capture = write_capture(tmp_path / "capture", [("C", NOM), ("S", CHEEZBURGER), ("C", SHORT_NOM)])
    with open_session(Target(remote=server.url)) as spark:
        assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
        typed = tables(decode(read_capture(spark, capture), "filemq"), "filemq")
        assert [row["credit"] for row in typed["Nom"].collect()] == [0x10000000000]
        assert [bytes(row["chunk"]) for row in typed["Cheezburger"].collect()] == [b"\0\1data"]
        errors = typed["_errors"].select("seq", "_error.field", "_error.offset").collect()
        assert [tuple(row) for row in errors] == [(2, "credit", 3)]
    assert "SPARK_CONNECT_MODE_ENABLED" not in os.environ


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
