"""Runs over portions of a capture end where one run over all of it ends, whatever comes twice, late or broken.

The answers here are made for the test: a conversation's `Nom` counted until its `Kthxbai`, and a roll-up of that
by date.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

import msgspec
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, DateType, LongType, StringType, StructField, StructType

from specwire.runtime.capture.link import Captured
from specwire.runtime.capture.segments import Source, build_table, list_files, write_segment
from specwire.runtime.spark.answers.answer import OPEN, Continued, Frames, RollUp, Step, Sums
from specwire.runtime.spark.answers.messages import union
from specwire.runtime.spark.errors import JobError
from specwire.runtime.spark.pipeline import advance as advancing
from specwire.runtime.spark.pipeline import answering
from specwire.runtime.spark.pipeline.advance import advance
from specwire.runtime.spark.pipeline.request import Request
from specwire.runtime.spark.pipeline.store import ANSWERS, LATE, Store, partition_date, run_number
from specwire.runtime.spark.pipeline.summary import Summary, Totals
from specwire.runtime.spark.pipeline.taking import Sorted, sort_out
from tests.runtime.spark.captures import BEGUN, NOM, SHORT_NOM
from tests.runtime.spark.outputs import read_table

pytestmark = pytest.mark.spark

KTHXBAI = [bytes.fromhex("aaa30b")]
DAY_US = 86_400_000_000

TYPES: Mapping[str, DataType] = {"STRING": StringType(), "BIGINT": LongType(), "DATE": DateType()}


def schema(columns: str) -> StructType:
    """Return the schema of columns, each a name and a type; reading DDL would need a session."""
    pairs = (column.split() for column in columns.split(", "))
    return StructType([StructField(name, TYPES[kind]) for name, kind in pairs])


TALKS = schema("protocol STRING, date DATE, tap STRING, conversation STRING, noms BIGINT")
OPEN_TALKS = schema("tap STRING, conversation STRING, noms BIGINT, date DATE")
DAYS = schema("protocol STRING, date DATE, noms BIGINT, talks BIGINT")


NOMS = schema("protocol STRING, date DATE, noms BIGINT")


def count_talks(
    typed: Mapping[str, DataFrame], protocol: str, state: Mapping[str, DataFrame] | None, /
) -> Step:
    """Count each conversation's `Nom`; it is over with its `Kthxbai`."""
    rows = union(
        table.selectExpr(
            "tap", "conversation", f"int('{name}' = 'Nom') noms", "date", f"'{name}' = 'Kthxbai' over"
        )
        for name, table in typed.items()
    )
    if state is not None:
        rows = rows.unionByName(state["open_talks"].withColumn("over", F.lit(False)))
    talks = rows.groupBy("tap", "conversation").agg(
        F.sum("noms").alias("noms"), F.min("date").alias("date"), F.max("over").alias("over")
    )
    shown = talks.withColumn("protocol", F.lit(protocol)).select(*TALKS.names, "over")
    return Step(
        rows={"talks": shown.withColumn(OPEN, ~F.col("over")).drop("over")},
        state={"open_talks": talks.where("not over").select(*OPEN_TALKS.names)},
    )


def select_noms(typed: Frames, answers: Frames, protocol: str) -> DataFrame:
    """Return each `Nom` as a sum."""
    return typed["Nom"].select("date", F.lit(1).alias("noms"))


def count_days(sums: Frames, answers: Frames, protocol: str) -> dict[str, DataFrame]:
    """Count `Nom` and conversations by date."""
    noms = sums["noms"].select("date", "noms")
    talks = answers["talks"].groupBy("date").agg(F.count("*").alias("talks"))
    days = noms.join(talks, "date", "full").na.fill(0)
    return {"days": days.withColumn("protocol", F.lit(protocol)).select(*DAYS.names)}


def of_filemq(protocol: str) -> bool:
    """Whether the answers of this test are for a protocol."""
    return protocol == "filemq"


READS = ("Nom", "Kthxbai")
ADDED_NOMS = Sums(
    "noms", of_filemq, lambda _: ("Nom",), (), NOMS, ("sum(noms) AS noms",), select_noms, is_answer=True
)
COUNTED_DAYS = RollUp("days", of_filemq, ("noms",), ("talks",), {"days": DAYS}, count_days)


@pytest.fixture(autouse=True)
def answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have these answers and no others."""
    talks = Continued("talks", lambda _: READS, {"talks": TALKS}, {"open_talks": OPEN_TALKS}, count_talks)
    monkeypatch.setattr(answering, "continued", lambda protocol: iter([talks] * of_filemq(protocol)))
    monkeypatch.setattr(answering, "all_sums", lambda protocol: iter([ADDED_NOMS] * of_filemq(protocol)))
    monkeypatch.setattr(answering, "roll_ups", lambda protocol: iter([COUNTED_DAYS] * of_filemq(protocol)))


MESSAGES = (
    # Segments: conversation, frames, day. `a` goes from the first to the third, `b` never ends.
    (("a", NOM, 0), ("b", NOM, 0), ("c", NOM, 0), ("c", KTHXBAI, 0)),
    (("a", NOM, 0), ("a", SHORT_NOM, 0), ("d", NOM, 0), ("d", KTHXBAI, 1)),
    (("a", NOM, 1), ("a", KTHXBAI, 1), ("b", NOM, 1), ("e", NOM, 0)),
    # Of the second day alone.
    (("f", NOM, 1), ("f", KTHXBAI, 1)),
    (("b", NOM, 1),),
)


def write(folder: Path, *numbers: int) -> None:
    """Write some of the segments."""
    folder.mkdir(exist_ok=True)
    for number in numbers:
        rows = [
            Captured(
                BEGUN + day * DAY_US, 4 * number + at, 4 * number + at, talk, "C", "00aa", tuple(frames), 0
            )
            for at, (talk, frames, day) in enumerate(MESSAGES[number])
        ]
        table = build_table(rows, Source("t-1-0", "filemq", "2"), 0)
        write_segment(folder, f"t-1-0-{number:06d}.parquet", table)


class Scene:
    """A capture that grows, and the output of the runs over it."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark = spark
        self.capture = folder / "capture"
        self.store = Store(folder / "out")
        self.capture.mkdir()

    def run(self, **request: object) -> Summary:
        """Run over all segments that are there; return the summary."""
        asked = Request(self.capture, **request)  # type: ignore[arg-type]  # as the caller names them
        paths = list_files(self.capture)
        found = advance(self.spark, self.store, paths, asked)
        assert found is not None
        return found

    def content(self) -> dict[str, list[str]]:
        """Return the rows of the tables as texts, without the order and the files they are stored in."""
        found = {
            name.rpartition("/")[2]: [
                f"{row['seq']}{row['conversation']} {row['date']}" for row in read_table(self.store, name)
            ]
            for name in self.store.tables()
            if name.startswith("typed/filemq/")
        }
        days = read_table(self.store, "answers/days")
        found["talks"] = [
            f"{row['conversation']}{row['noms']} {row['date']}"
            for row in read_table(self.store, "answers/talks")
        ]
        found["days"] = [f"{row['noms']} {row['talks']} {row['date']}" for row in days]
        found["frames"] = [str(row["seq"]) for row in read_table(self.store, "frames")]
        return {name: sorted(rows) for name, rows in found.items() if rows}


FIRST, SECOND = "2023-11-14", "2023-11-15"
WHOLE = {
    "Nom": sorted(
        [f"{row} {FIRST}" for row in ("0a", "1b", "2c", "4a", "6d", "11e")]
        + [f"8a {SECOND}", f"10b {SECOND}"]
    ),
    "Kthxbai": [f"3c {FIRST}", f"7d {SECOND}", f"9a {SECOND}"],
    "_errors": [f"5a {FIRST}"],
    "talks": [f"{row} {FIRST}" for row in ("a3", "b2", "c1", "d1", "e1")],
    "days": [f"2 0 {SECOND}", f"6 5 {FIRST}"],
    "frames": sorted(map(str, range(12))),
}
"""What the first three together give, worked out by hand from `MESSAGES`."""


def test_portions_come_to_the_same_as_the_whole(spark: SparkSession, tmp_path: Path) -> None:
    """With a copy, a truncated segment, and answers that lag behind."""
    scene = Scene(spark, tmp_path)
    write(scene.capture, 0)
    first = scene.run()
    assert first.totals == Totals(captured=4, typed=4)
    assert scene.content()["talks"] == [f"a1 {FIRST}", f"b1 {FIRST}", f"c1 {FIRST}"]
    shutil.copy(scene.capture / "t-1-0-000000.parquet", scene.capture / "again.parquet")
    write(scene.capture, 1)
    (scene.capture / "cut.parquet").write_bytes((scene.capture / "again.parquet").read_bytes()[:-9])
    second = scene.run(answers=False)
    assert (second.totals, second.set_aside) == (Totals(captured=12, typed=7, errors=1, repeated=4), 1)
    assert (second.segments.duplicate, second.segments.quarantined) == (1, 1)
    write(scene.capture, 2)
    third = scene.run(answers=False)
    assert third.totals.captured == 16
    assert scene.run(answers=False) == third
    assert scene.store.manifest.run == 3, "a run without new segments commits nothing"
    assert scene.content()["days"] == [f"3 3 {FIRST}"], "the answers wait"
    last = scene.run()
    assert scene.content() == WHOLE
    assert last.totals == Totals(captured=16, typed=11, errors=1, repeated=4)
    manifest = scene.store.manifest
    assert (manifest.run, manifest.answered) == (4, 4)
    assert scene.run() == last and scene.store.manifest == manifest
    state = scene.store.state(spark, "filemq", "talks")
    assert state is not None
    assert sorted(row.conversation for row in state["open_talks"].collect()) == ["b", "e"]


def test_a_day_is_rolled_up_when_its_rows_change(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not because a conversation that began then is still open; but where this has gone on.

    Spark writes the tables here, as where there are many messages.
    """
    monkeypatch.setattr(advancing, "FEW_MESSAGES", 0)
    scene = Scene(spark, tmp_path)

    def rolled_up(table: str = "days") -> dict[str, int]:
        return {partition_date(path): run_number(path) for path in scene.store.files(f"answers/{table}")}

    write(scene.capture, 0)
    scene.run()
    write(scene.capture, 3)
    scene.run()
    assert rolled_up() == {FIRST: 1, SECOND: 2}
    assert scene.content()["talks"] == [f"a1 {FIRST}", f"b1 {FIRST}", f"c1 {FIRST}", f"f1 {SECOND}"]
    write(scene.capture, 4)
    scene.run()
    assert rolled_up() == {FIRST: 3, SECOND: 3}
    assert rolled_up("noms") == {FIRST: 1, SECOND: 3}, "its tables have no new rows of the first day"
    assert scene.content()["days"] == [f"2 1 {SECOND}", f"3 3 {FIRST}"]


def test_late_messages_wait_or_are_worked_in(spark: SparkSession, tmp_path: Path) -> None:
    """Kept, they change no answer; worked in, the answers are as if they had come in time."""
    scene = Scene(spark, tmp_path)
    write(scene.capture, 0, 2)
    scene.run(late="keep")
    before = scene.content()
    write(scene.capture, 1)
    kept = scene.run(late="keep")
    assert kept.totals == Totals(captured=12, typed=8, late=4)
    assert scene.content() == before
    late = scene.store.table(spark, LATE)
    assert late is not None
    assert sorted(row.seq for row in late.collect()) == [4, 5, 6, 7]
    done = scene.run()
    assert scene.content() == WHOLE
    assert done.totals == Totals(captured=12, typed=11, errors=1)
    assert scene.store.table(spark, LATE) is None
    assert [(told.outcome, told.name) for told in done.segments.told] == [("read", "t-1-0-000001.parquet")]


def test_an_answer_that_a_folder_lacks_is_made_for_all_its_days(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the next run, with new segments or without: one that goes on from portion to portion, and one by the day."""
    scene = Scene(spark, tmp_path)
    write(scene.capture, 0, 1)
    with monkeypatch.context() as earlier:
        earlier.setattr(answering, "continued", lambda protocol: iter(()))
        earlier.setattr(answering, "all_sums", lambda protocol: iter(()))
        earlier.setattr(answering, "roll_ups", lambda protocol: iter(()))
        scene.run()
        assert scene.store.files(ANSWERS) == []
        scene.run()
        assert scene.store.manifest.run == 1, "there is nothing to do"
    with monkeypatch.context() as earlier:
        earlier.setattr(answering, "all_sums", lambda protocol: iter(()))
        earlier.setattr(answering, "roll_ups", lambda protocol: iter(()))
        scene.run()
        assert scene.store.manifest.run == 2
        assert [name for name in scene.store.tables() if name.startswith(ANSWERS)] == [f"{ANSWERS}/talks"]
    write(scene.capture, 2)
    scene.run()
    assert scene.content() == WHOLE
    scene.run()
    assert scene.store.manifest.run == 3


def test_messages_that_do_not_add_up_fail_the_run(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A segment that loses a message between intake and reading leaves nothing behind."""
    scene = Scene(spark, tmp_path)
    write(scene.capture, 0)

    def promise_more(*arguments: object) -> Sorted:
        return msgspec.structs.replace(sort_out(*arguments), messages=5)  # type: ignore[arg-type]  # as given

    monkeypatch.setattr(advancing, "sort_out", promise_more)
    with pytest.raises(JobError, match="hold 5 new messages and 4 were decoded; a segment has changed"):
        scene.run()
    assert not scene.store.out.exists()
