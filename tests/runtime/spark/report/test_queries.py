"""Every SQL statement of a report, run by DuckDB over the output folder, gives the number beside it."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pytest
from pyspark.sql import DataFrame, SparkSession

from specwire.runtime.spark.pipeline.store import Store
from specwire.runtime.spark.pipeline.summary import Summary
from specwire.runtime.spark.protocols import role_name
from specwire.runtime.spark.report.charts import Figure
from specwire.runtime.spark.report.findings import NODES_KEPT, collect
from specwire.runtime.spark.report.page import Section, View, build_view
from specwire.runtime.spark.report.text import count_text
from tests.house.repository import ROOT
from tests.runtime.spark.outputs import Output

pytestmark = pytest.mark.spark

Rows = list[tuple[Any, ...]]


@pytest.fixture(scope="module")
def out(two_runs: Output) -> Path:
    """The output folder of a capture of FILEMQ, Flux and NORFAB with faults of all kinds."""
    return two_runs.out


@pytest.fixture(scope="module")
def view(spark: SparkSession, out: Path) -> View:
    """What its report shows."""

    def read(name: str) -> DataFrame | None:
        folder = out / (name if name == "frames" else f"answers/{name}")
        return spark.read.parquet(str(folder)) if folder.exists() else None

    summary: Summary | None = Store(out).summary()
    assert summary is not None
    return build_view(summary, collect(read))


@pytest.fixture
def run(out: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Run a statement as a reader would: in the output folder."""
    monkeypatch.chdir(out)
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        yield lambda sql: connection.execute(sql).fetchall()


def test_cards(view: View, run: Any) -> None:
    """All cards but the time range have a query; a number is that of the query."""
    shown = 0
    for chapter in view.chapters:
        for card in chapter.cards:
            if card.name == "time range":
                continue
            assert run(card.sql) == [(card.number,)], (chapter.title, card.name)
            shown += 1
    assert [chapter.title for chapter in view.chapters] == ["", "filemq", "flux", "norfab"]
    assert shown >= 20


def is_same(found: Any, shown: Any) -> bool:
    """Return whether a value of a query is the one shown, which has whole microseconds."""
    if isinstance(found, float) and isinstance(shown, int):
        return int(found) == shown
    return bool(found == pytest.approx(shown))


def test_tables(view: View, run: Any) -> None:
    """Each table with a query holds the rows of the query, in the same order where the query has one."""
    titles = set()
    for protocol, section in tables_of(view):
        titles.add(section.title)
        assert not isinstance(section.content, Figure)
        found = [adapt(section.title, protocol, row) for row in run(section.content.sql)]
        values = [comparable(section.title, row) for row in section.content.values]
        assert len(found) == len(values), section.anchor
        for one, other in zip(sorted(found, key=repr), sorted(values, key=repr), strict=True):
            assert all(map(is_same, one, other)), section.anchor
    assert titles >= {
        "Taps",
        "Messages that did not decode",
        "Violations of the dialogs",
        "Slowest topics",
        "Messages by type and direction",
        "Largest files",
        "Files by conversation",
    }


def tables_of(view: View) -> list[tuple[str, Section]]:
    """Return the tables that have a query, with their protocol."""
    return [
        (chapter.title, section)
        for chapter in view.chapters
        for section in chapter.sections
        if not isinstance(section.content, Figure) and section.content.sql
    ]


def adapt(title: str, protocol: str, row: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return a row of a query with the columns that the table shows."""
    if title == "Messages by type and direction":
        return (row[0], role_name(protocol, row[1]), *row[2:])
    if title == "Slowest topics":
        return row[3:]
    if title == "Longest silences":
        return row[2:]
    if title == "Taps":
        return tuple(value.replace(tzinfo=UTC) if isinstance(value, datetime) else value for value in row)
    return row


def comparable(title: str, row: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the part of a row of a table that its query gives as it is."""
    if title in ("Slowest topics", "Longest silences"):
        return row[1:]
    if title == "Taps":
        return (*row[:2], *map(datetime.fromisoformat, row[2:4]), *row[4:7])
    return row


def test_charts(view: View, run: Any) -> None:
    """The bars over time add up to the messages; latencies to the number in the note; peers to the directions."""
    for chapter in view.chapters:
        for section in chapter.sections:
            if not isinstance(section.content, Figure):
                continue
            rows: Rows = run(section.content.sql)
            if section.title == "Messages over time":
                [messages] = [card.number for card in chapter.cards if card.name == "messages"]
                assert sum(row[2] for row in rows) == messages
            elif section.title == "Latency":
                assert section.content.note.startswith(f"{count_text(sum(row[2] for row in rows))} ")
            elif section.title == "Who talks to whom":
                shown = section.content.description.split()[-2]
                ends = {end for row in rows for end in (row[1:3], row[3:5])}
                assert (len(ends) > NODES_KEPT) == ("peers and services are shown" in section.content.note)
                assert (
                    shown == count_text(len(rows))
                    or f" of {count_text(len(rows))} directions are shown" in section.content.note
                )
            else:
                shown = count_text(min(len(rows), 30))
                assert section.content.description.startswith(f"{shown} conversations")


def test_dashboards(view: View, run: Any) -> None:
    """Every statement of the page runs, in order; totals are those of the report."""
    page = (ROOT / "docs/how-to/dashboards.md").read_text(encoding="utf-8")
    results = [run(sql) for sql in re.findall(r"```sql\n(.*?)```", page, re.DOTALL)]
    _views, messages, errors, latency, failed, _silent, undecoded, violations = results
    cards = {card.name: card.number for card in view.chapters[0].cards}
    assert sum(row[2] for row in messages) == cards["messages"]
    assert sum(row[2] for row in errors) == sum(row[4] for row in undecoded) == cards["not decoded"]
    assert sum(row[2] for row in violations) == cards["violations"]
    assert all(row[3] > 0 for row in latency)
    assert all(row[5] + row[6] > 0 for row in failed)
