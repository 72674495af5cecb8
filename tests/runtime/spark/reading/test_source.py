"""The format ``specwire``: the rows and the schema of `decode`, and one sentence for what cannot be read.

The statements of docs/reference/spark.md are among them.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import EqualTo, In, LessThan

from specwire.runtime.capture.compact import compact
from specwire.runtime.capture.segments import COLUMNS
from specwire.runtime.spark import decode, read, register, tables
from specwire.runtime.spark.reading.source import RowGroups, SpecwireSource
from specwire.runtime.spark.session.java import describe_failure
from tests.runtime.capture.folders import TAP, TUESDAY_S, names, put_segment
from tests.runtime.spark import captures

pytestmark = pytest.mark.spark

MESSAGES = [
    ("C", captures.ICANHAZ),
    ("C", captures.NOM),
    ("S", captures.CHEEZBURGER),
    ("C", captures.SHORT_NOM),
    ("S", captures.HUGZ),
]


ODD = 5
"""Rows with nulls, or nothing, in them."""


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> SparkSession:
    """The session, which knows the format."""
    register(spark)
    return spark


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A capture of five messages, of which one is faulty, and of rows with nulls and nothing in them."""
    folder = captures.write_capture(tmp_path_factory.mktemp("source") / "with space", MESSAGES)
    frames = [None, [], [None], [b"\xaa\xa3\x09", None], [b""]]
    numbers = range(len(frames))
    odd: dict[str, Any] = {name: [None] * len(frames) for name in COLUMNS.names} | {"frames": frames}
    odd |= {"seq": numbers, "protocol": ["filemq"] * len(frames), "tap": ["b"] * len(frames)}
    pq.write_table(pa.table(odd, schema=COLUMNS), folder / "odd.parquet", row_group_size=2)
    return folder


def load(session: SparkSession, folder: Path, **options: object) -> DataFrame:
    """Read a capture by the format."""
    reader = session.read.format("specwire")
    for name, value in options.items():
        reader = reader.option(name, str(value))
    return reader.load(str(folder))


def failure(session: SparkSession, folder: Path, **options: object) -> str:
    """Return the sentence that a reading fails with."""
    with pytest.raises(PySparkException) as caught:
        load(session, folder, **options).collect()
    return describe_failure(caught.value)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"mode": "dropmalformed", "record_id": True, "record_frames": True, "input_file": True},
        {"message": "Nom,Hugz", "protocol": "filemq"},
        {"message": "Nom,Hugz", "mode": "dropmalformed"},
        {"columns": "peer,octets,Nom,Cheezburger.chunk,Cheezburger.offset"},
    ],
    ids=["all", "beside", "messages", "good messages", "columns"],
)
def test_it_gives_what_decode_gives(session: SparkSession, folder: Path, options: dict[str, object]) -> None:
    """Schema, metadata, values, errors."""
    shared: dict[str, Any] = {name: value for name, value in options.items() if name != "protocol"}
    expected = decode(read(session, folder), "filemq", **shared)
    found = load(session, folder, **options)
    assert found.schema == expected.schema
    assert sorted(map(str, found.collect())) == sorted(map(str, expected.collect()))


def test_tables_are_made_of_it(session: SparkSession, folder: Path) -> None:
    """The rows say what they were decoded as."""
    (row,) = tables(load(session, folder))["Nom"].collect()
    assert (row.seq, row.credit) == (1, 1 << 40)


def test_failfast_names_file_message_field_and_offset(session: SparkSession, folder: Path) -> None:
    """As `decode` does, of whichever faulty message is met first."""
    found = failure(session, folder, mode="FAILFAST", message="Hugz")
    assert found.startswith(f"{folder.as_uri()}/")
    assert re.search(
        r"/odd\.parquet: message 0 of tap b: filemq\.signature: expected a frame|"
        r"/server-1-0-000000\.parquet: message 3 of tap server-1-0, frame 0: NOM\.credit at octet 3: expected 8",
        found,
    )


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            {"modes": "x"},
            "there is no option 'modes' (is it 'mode'?); the known ones are path, paths, from, protocol, damaged, gap_s,",
        ),
        ({"debug": "true"}, "there is no option 'debug'; the known ones are path,"),
        ({"mode": "x"}, "option 'mode' is 'x'; it may be PERMISSIVE or DROPMALFORMED or FAILFAST"),
        ({"damaged": "skip"}, "option 'damaged' is 'skip'; it may be fail or quarantine"),
        ({"protocol": "smtp"}, "there is no protocol 'smtp'; the known ones are cmb1"),
        ({"message": "NOM"}, "option 'message' names 'NOM'; filemq has Ohai"),
        ({"columns": "debit"}, "option 'columns' names 'debit'; decoded filemq has ts"),
    ],
)
def test_what_cannot_be_asked_for_is_one_sentence(
    session: SparkSession, folder: Path, options: dict[str, object], sentence: str
) -> None:
    """Before anything is read."""
    assert failure(session, folder, **options).startswith(sentence)


def test_a_place_that_is_no_capture_is_one_sentence(session: SparkSession, tmp_path: Path) -> None:
    """Or none of this machine's."""
    assert failure(session, tmp_path / "gone").endswith("gone: there is no such capture folder or file")
    with pytest.raises(PySparkException) as caught:
        session.read.format("specwire").load("s3://bucket/capture")
    assert describe_failure(caught.value).startswith("s3://bucket/capture: the format specwire reads folders")
    with pytest.raises(PySparkException) as caught:
        session.read.format("specwire").load()
    assert describe_failure(caught.value).startswith("there is no path: name the capture's folder in load()")


def test_several_protocols_must_be_told_apart(session: SparkSession, tmp_path: Path) -> None:
    """Every row is read as the one that is named."""
    folder = captures.write_capture(tmp_path / "both", [("C", captures.NOM)])
    captures.write_capture(folder, [("C", captures.FLUX_ATTR_GET)], tap="b-1-0", protocol="flux")
    assert failure(session, folder).endswith(
        "the capture holds filemq and flux: name one with the option 'protocol'"
    )
    rows = load(session, folder, protocol="flux", columns="protocol").collect()
    assert {(row.protocol, row["_message"]) for row in rows} == {("filemq", None), ("flux", "Request")}


def test_files_that_are_no_segments(session: SparkSession, tmp_path: Path) -> None:
    """The reading fails and names the first, or a row stands for each; hidden files are passed over."""
    folder = captures.write_capture(tmp_path / "capture", MESSAGES)
    whole = next(folder.iterdir()).read_bytes()
    (folder / "cut.parquet").write_bytes(whole[:-9])
    (folder / ".half.parquet.tmp").write_bytes(whole[:9])
    pq.write_table(pa.table({"id": [1]}), folder / "foreign.parquet")
    assert failure(session, folder).endswith(
        "cut.parquet: not a whole Parquet file, it was cut off or damaged"
    )
    rows = (
        load(session, folder, damaged="quarantine", input_file=True)
        .where("_error.kind = 'segment'")
        .collect()
    )
    told = {row["_input_file"].rpartition("/")[2]: row["_error"].text for row in rows}
    assert told.keys() == {"cut.parquet", "foreign.parquet"}
    assert told["foreign.parquet"].endswith("not a capture segment, it has no column 'ts'")
    assert load(session, folder, damaged="quarantine").count() == len(MESSAGES) + 2
    assert load(session, folder, damaged="quarantine", mode="DROPMALFORMED").count() == len(MESSAGES) - 1
    # Each segment is a task of its own: whichever comes first is told.
    told_first = failure(session, folder, damaged="quarantine", mode="FAILFAST", message="Nom")
    assert "cut.parquet: " in told_first or "foreign.parquet: " in told_first


@pytest.mark.parametrize(
    "clause", ["OPTIONS (path '{0}', message 'Nom')", "OPTIONS (message 'Nom') LOCATION '{0}'"]
)
def test_a_catalog_table(session: SparkSession, folder: Path, clause: str) -> None:
    """Its options are those of its creation, in every session of the catalog; Spark's and the user's properties are not."""
    session.sql(
        f"CREATE TABLE noms USING specwire {clause.format(folder)} COMMENT 'NOM' TBLPROPERTIES ('team' = 'a')"
    )
    try:
        rows = session.sql("SELECT seq, Nom.credit FROM noms WHERE tap = 'server-1-0'").collect()
        assert [tuple(row) for row in rows] == [(1, 1 << 40), (3, None)]
        other = session.newSession()
        register(other)
        assert other.table("noms").columns == load(session, folder, message="Nom").columns
        assert other.sql("SELECT seq FROM noms WHERE seq = 1 AND _message = 'Nom'").collect() == [(1,)]
    finally:
        session.sql("DROP TABLE noms")


def test_a_catalog_table_with_unknown_options_is_refused(session: SparkSession, folder: Path) -> None:
    with pytest.raises(PySparkException, match="there is no option 'massage'"):
        session.sql(f"CREATE TABLE bad USING specwire OPTIONS (path '{folder}', massage 'Nom')")


def test_a_temporary_view_in_sql(session: SparkSession, folder: Path) -> None:
    """A view has the rows that the format reads."""
    session.sql(
        f"CREATE TEMPORARY VIEW noms USING specwire OPTIONS (path '{folder}', protocol 'filemq', message 'Nom')"
    )
    try:
        rows = session.sql("SELECT seq, Nom.credit FROM noms").collect()
    finally:
        session.sql("DROP VIEW noms")
    expected = load(session, folder, protocol="filemq", message="Nom").select("seq", "Nom.credit").collect()
    assert rows == expected and rows


def test_a_relative_path(session: SparkSession, folder: Path) -> None:
    """Spark was started in this folder."""
    relative = Path(os.path.relpath(folder))
    assert load(session, relative).count() == load(session, folder).count() > 0


def test_lists_patterns_and_files(session: SparkSession, folder: Path, tmp_path: Path) -> None:
    """Each file once, whatever it is called; `read` takes the same names."""
    one = captures.write_capture(tmp_path / "host=a, é [1]", [("C", captures.NOM)], tap="a-1-0")
    two = captures.write_capture(
        tmp_path / "host=b", [("C", captures.HUGZ), ("C", captures.NOM)], tap="b-1-0"
    )
    file = next(two.iterdir())
    named: list[tuple[list[str], int]] = [
        ([str(one), str(two)], 3),
        ([f"{tmp_path}/host=*"], 3),
        ([f"{tmp_path}/host={{b,c}}/*.parquet", str(file)], 2),
        ([f"{tmp_path}/host=b/../host=a, é [1]"], 1),
        ([file.as_uri()], 2),
    ]
    for texts, count in named:
        loaded = session.read.format("specwire").load(texts if len(texts) > 1 else texts[0])
        assert loaded.count() == read(session, texts).count() == count, texts
    with pytest.raises(PySparkException) as caught:
        session.read.format("specwire").load(f"{tmp_path}/nothing*")
    assert describe_failure(caught.value).endswith("nothing*: no file or folder matches this pattern")
    assert failure(session, tmp_path).endswith(
        f"the capture folder holds no segments (*.parquet) and no packet captures; name its folders as {tmp_path}/*"
    )


QUERIES = [
    "tap = 'b' and seq > 2",
    "sender in ('S', 'x') and conversation = 'c1'",
    "not sender in ('S') and _message is not null",
    "ts >= timestamp'2023-11-14 22:13:20.003' and ts < timestamp'2023-11-14 22:13:20.004'",
    "tap is null or seq = 1",
    "sender is null and seq between 1 and 3 and protocol <> 'flux'",
    "tap <> 'b'",
]


@pytest.mark.parametrize("query", QUERIES)
def test_filters_give_the_same_rows(session: SparkSession, folder: Path, query: str) -> None:
    """Pushed or evaluated by Spark, damaged files included."""
    unfiltered = load(session, folder, damaged="quarantine").localCheckpoint()
    found = load(session, folder, damaged="quarantine").where(query)
    assert sorted(map(str, found.collect())) == sorted(map(str, unfiltered.where(query).collect()))


def test_filters_skip_row_groups_and_rows(folder: Path) -> None:
    """By the footers of the segments; what is not evaluated here is returned."""
    source = SpecwireSource({"path": str(folder), "protocol": "filemq"})
    reader = source.reader(source.schema())
    other = EqualTo(("_message",), "Nom")
    assert [*reader.pushFilters([EqualTo(("tap",), "b"), LessThan(("seq",), 2), other])] == [other]
    (part,) = reader.partitions()
    assert isinstance(part, RowGroups)
    assert [(Path(name).name, group) for name, group in part.groups] == [("odd.parquet", 0)]
    assert sum(batch.num_rows for batch in reader.read(part)) == 2
    assert [*reader.pushFilters([In(("seq",), (1, None))])] == [In(("seq",), (1, None))]


def test_a_stream_reads_messages_once(session: SparkSession, tmp_path: Path) -> None:
    """Over restarts, compaction of half-read segments, and a batch that runs again after compaction."""
    capture, found, kept = tmp_path / "capture", tmp_path / "found", tmp_path / "checkpoint"

    def take() -> list[int]:
        stream = session.readStream.format("specwire").load(str(capture)).select("seq")
        query = stream.writeStream.format("parquet").option("checkpointLocation", str(kept))
        assert query.trigger(availableNow=True).start(str(found)).awaitTermination(600)
        return sorted(row.seq for row in session.read.parquet(str(found)).collect())

    for number in range(3):
        put_segment(capture, number, range(number * 5, number * 5 + 5))
    assert take() == list(range(15))
    put_segment(capture, 3, range(15, 20))
    compact(capture, now_s=TUESDAY_S)
    assert names(capture) == [f"{TAP}-000000_000003.parquet"]
    assert take() == list(range(20))
    for log in ("commits", "offsets"):
        (kept / log / f".{1}.crc").unlink(missing_ok=True)
    (kept / "commits" / "1").unlink()
    assert take() == list(range(20))


def test_a_stream_that_cannot_be_is_one_sentence(session: SparkSession, folder: Path, tmp_path: Path) -> None:
    stream = (
        session.readStream.format("specwire").option("protocol", "filemq").load(str(folder / "odd.parquet"))
    )
    query = stream.writeStream.format("noop").option("checkpointLocation", str(tmp_path)).start()
    with pytest.raises(PySparkException, match="a stream follows one folder of capture segments"):
        query.awaitTermination(60)


LIVE = Path(__file__).parents[4] / "docs" / "how-to" / "live.md"


def test_follow_as_documented(session: SparkSession, folder: Path, tmp_path: Path) -> None:
    """A damaged file is a row with an error, and does not end the stream; folders may have any name."""
    text = LIVE.read_text(encoding="utf-8").replace('"captures/today"', repr(str(folder)))
    (block,) = re.findall(r"```py\n(.*?)```", text, re.DOTALL)
    names: dict[str, Any] = {"spark": session}
    exec(compile(block.replace('"flux"', '"filemq", settle_s="0"'), LIVE.name, "exec"), names)  # noqa: S102
    messages = names["messages"]
    assert messages.schema["_message"].metadata["comment"]
    (cut := folder / "cut-1-0-000000.parquet").write_bytes(b"PAR1")
    try:
        query = messages.writeStream.format("memory").queryName("followed").trigger(availableNow=True)
        assert query.start().awaitTermination(600)
    finally:
        cut.unlink()
    kinds = [row.kind for row in session.sql("SELECT _error.kind AS kind FROM followed").collect()]
    assert len(kinds) == len(MESSAGES) + ODD + 1 and kinds.count("segment") == 1
