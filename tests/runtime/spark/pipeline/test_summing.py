"""Counts of several runs become one summary that adds up."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from specwire.runtime.spark.pipeline import counts as counting
from specwire.runtime.spark.pipeline import summing
from specwire.runtime.spark.pipeline.commit import begin
from specwire.runtime.spark.pipeline.counts import (
    SCHEMA,
    STRETCHES,
    WIDTHS_MS,
    add_up,
    choose_width_ms,
    cut,
    read_counts,
    write_counts,
)
from specwire.runtime.spark.pipeline.ledger import Entry, Ledger, Outcome
from specwire.runtime.spark.pipeline.summary import Bucket, ErrorCount, TapCount, Timeline, Totals, TypeCount
from specwire.runtime.spark.pipeline.summing import (
    add_timelines,
    count_errors,
    count_segments,
    count_taps,
    count_types,
    draw_timelines,
    total,
)


def row(since: int, messages: int, *, width: int = 1000, tap: str = "t", **more: object) -> dict[str, object]:
    """Return a row of counts; `since` and `width` in milliseconds, one octet a message."""
    return {
        "protocol": "filemq", "tap": tap, "since": since, "sender": "C", "message": "Nom", "messages": messages,
        "octets": messages, "first": since * 1000, "last": since * 1000 + 5, "width_ms": width, **more,
    }  # fmt: skip


def counts(*rows: dict[str, object]) -> pa.Table:
    """Return rows as the table of counts."""
    return pa.Table.from_pylist(list(rows), schema=SCHEMA)


WRONG: dict[str, Any] = {
    "message": None,
    "wrong_message": "NOM",
    "wrong_field": "credit",
    "wrong_kind": "length",
}


def test_taps_add_up_over_runs() -> None:
    """With what they dropped and what is missing; a tap that saw nothing is last."""
    table = counts(row(0, 5), row(7000, 2, **WRONG), row(2000, 1, tap="u"))
    ledger = Ledger(
        [
            Entry("a", 1, 1, 1, Outcome.READ, rows=5, tap="t", dropped=2, taps=["t"], stretches=[[0, 4]]),
            Entry("b", 1, 1, 2, Outcome.READ, rows=2, tap="t", dropped=3, taps=["t"], stretches=[[10, 11]]),
            Entry("c", 1, 1, 2, Outcome.READ, rows=1, tap="u", taps=["u"], stretches=[[4, 4]]),
            Entry("d", 1, 1, 2, Outcome.READ, tap="v", dropped=9),
        ]
    )
    first, last = "1970-01-01T00:00:00.000000+00:00", "1970-01-01T00:00:07.000005+00:00"
    assert count_taps(table, ledger) == (
        TapCount("t", "filemq", 7, 7, 2, 3, first, last, missing=5),
        TapCount(
            "u", "filemq", 1, 1, 0, 0, first.replace("00.0", "02.0"), "1970-01-01T00:00:02.000005+00:00"
        ),
        TapCount("v", "", 0, 0, 0, 9, None, None),
    )


def test_types_and_errors_add_up_over_runs() -> None:
    """The stretches of time do not matter to them."""
    table = counts(row(0, 5), row(7000, 2), row(0, 1, **WRONG, text="b"), row(9, 3, **WRONG, text="a"))
    assert count_types(table) == (
        TypeCount("t", "filemq", None, "C", 4, 4),
        TypeCount("t", "filemq", "Nom", "C", 7, 7),
    )
    assert count_errors(table) == (ErrorCount("t", "filemq", "NOM", "credit", "length", "a", 4),)
    assert add_up(table).num_rows == 4
    assert count_types(add_up(counts(row(0, 5), row(0, 2)))) == (TypeCount("t", "filemq", "Nom", "C", 7, 7),)


def test_many_errors_of_one_protocol_do_not_displace_those_of_another() -> None:
    """150 findings of two messages in FILEMQ, of which 100 are kept, and one of one message in Flux."""
    many = [row(0, 2, **{**WRONG, "wrong_field": f"f{number}"}, text=f"{number:03}") for number in range(150)]
    other = {**row(0, 1, **WRONG, text="rare"), "protocol": "flux"}
    found = count_errors(counts(*many, other))
    assert [error.text for error in found] == [*(f"{number:03}" for number in range(100)), "rare"]


def test_messages_are_where_the_totals_say() -> None:
    """Each captured message in one place."""
    ledger = Ledger(
        [
            Entry("a", 1, 1, 1, Outcome.READ, rows=7),
            Entry("b", 1, 1, 1, Outcome.PARTIAL, rows=5, repeated=3),
            Entry("c", 1, 1, 1, Outcome.DUPLICATE, rows=4, repeated=4),
            Entry("d", 1, 1, 1, Outcome.LATE, rows=6, repeated=1),
            Entry("e", 1, 1, 1, Outcome.QUARANTINED, reason="cut off"),
        ]
    )
    found = total(counts(row(0, 6), row(0, 3, **WRONG)), ledger)
    assert found == Totals(captured=22, typed=6, errors=3, late=5, repeated=8)
    assert found.captured == found.typed + found.errors + found.late + found.repeated
    segments = count_segments(ledger)
    numbers = (segments.read, segments.partial, segments.duplicate, segments.late, segments.quarantined)
    assert numbers == (1, 1, 1, 1, 1)


@pytest.mark.parametrize(
    ("span_us", "width_ms"),
    [(0, 1), (239_999, 1), (240_000, 2), (1_200_000, 10), (60 * 86_400_000_000, 86_400_000)],
)
def test_stretches_suit_the_span(span_us: int, width_ms: int) -> None:
    """At most 240 of them."""
    assert choose_width_ms(span_us) == width_ms
    assert span_us < width_ms * 1000 * STRETCHES


def test_each_width_divides_the_next() -> None:
    """Or counts of two runs would not add up."""
    assert all(wide % narrow == 0 for narrow, wide in itertools.pairwise(WIDTHS_MS))


def test_the_timeline_takes_runs_of_different_widths() -> None:
    """The widest says how wide."""
    table = counts(row(1000, 1), row(2000, 2), row(3000, 4), row(60_000, 8, width=2000))
    timeline = add_timelines(draw_timelines(table).values())
    assert timeline.width_s == 2
    assert timeline.buckets == tuple(Bucket(at, n, n, {"Nom": n}) for at, n in ((0, 1), (1, 6), (30, 8)))
    assert draw_timelines(counts()) == {}
    assert add_timelines(()).buckets == ()


def test_stretches_are_cut_downwards() -> None:
    """Before 1970 too; a stretch that is wider already stays."""
    table = cut(counts(row(-1, 1), row(-2000, 2), row(1999, 4), row(8000, 8, width=4000)), 2000)
    assert table.schema == SCHEMA
    assert table["since"].to_pylist() == [-2000, -2000, 0, 8000]
    assert table["width_ms"].to_pylist() == [2000, 2000, 2000, 4000]


def test_many_runs_leave_few_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a run a minute, cut to stretches of 20 ms, those that are merged have the width that suits all."""
    monkeypatch.setattr(counting, "MERGED_AFTER", 4)
    runs, begun = 24, 1_700_000_000_000
    for number in range(runs):
        at = begun + number * 60_000
        added = counts(*(row(at + 20 * step, 1, width=20) for step in range(50)))
        with begin(tmp_path / "out") as run:
            whole = write_counts(run, read_counts(run.out), [added])
            run.commit(run.before)
        messages = 50 * (number + 1)
        assert count_types(whole) == (TypeCount("t", "filemq", "Nom", "C", messages, messages),)
    stored = read_counts(tmp_path / "out")
    # At most four files lie there: the merged one, and three of fifty rows.
    assert stored.num_rows <= STRETCHES + 1 + 3 * 50
    assert add_up(stored).num_rows == add_up(whole).num_rows
    # 23 minutes and a second need stretches of ten seconds; a run a minute is in each sixth.
    timeline = add_timelines(draw_timelines(stored).values())
    assert timeline.width_s == 10
    assert timeline.buckets == tuple(Bucket(6 * at, 50, 50, {"Nom": 50}) for at in range(24))


def test_the_timeline_adds_up_before_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that come out of Arrow are as many as buckets, however narrow the stretches of the runs are."""
    brought: list[int] = []
    group = summing._group

    def note(*arguments: Any) -> list[dict[str, Any]]:
        rows = group(*arguments)
        brought.append(len(rows))
        return rows

    monkeypatch.setattr(summing, "_group", note)
    # Ten seconds need stretches of 100 ms: 100 of them.
    timeline = add_timelines(
        draw_timelines(counts(*(row(10 * step, 1, width=10) for step in range(1000)))).values()
    )
    assert timeline.width_s == 0.1
    assert [bucket.messages for bucket in timeline.buckets] == [10] * 100
    assert brought == [100]


def test_each_protocol_has_its_timeline() -> None:
    """All have the stretches of the whole: a second for 101 s. The sum has a message of each at the start."""
    table = counts(row(0, 1), row(100_000, 2, protocol="zre", message="Ping"), row(0, 4, protocol="zre"))
    found = draw_timelines(table)
    assert found == {
        "filemq": Timeline(1.0, (Bucket(0, 1, 1, {"Nom": 1}),)),
        "zre": Timeline(1.0, (Bucket(0, 4, 4, {"Nom": 4}), Bucket(100, 2, 2, {"Ping": 2}))),
    }
    assert add_timelines(found.values()).buckets[0] == Bucket(0, 5, 5, {"Nom": 5})


def test_a_burst_of_a_minute_shows_in_three_hours() -> None:
    """One message a second for three hours, and 6,000 more in the 91st minute: one bar is a hundred times higher."""
    quiet = [row(second * 1000, 1) for second in range(3 * 3600)]
    timeline = add_timelines(draw_timelines(counts(*quiet, row(90 * 60_000, 6000))).values())
    assert timeline.width_s == 60
    assert {bucket.index: bucket.messages for bucket in timeline.buckets if bucket.messages != 60} == {
        90: 6060
    }
