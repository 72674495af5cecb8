"""Tables of the report: each total is exact, and each cut list says so."""

from __future__ import annotations

from msgspec import structs

from specwire.runtime.spark.pipeline.summary import SetAside, TapCount, TypeCount
from specwire.runtime.spark.report.findings import Findings, Total, ViolationCount
from specwire.runtime.spark.report.tables import (
    ERRORS_SHOWN,
    SEGMENTS_SHOWN,
    SILENCES_SHOWN,
    TAPS_SHOWN,
    TRANSFERS_SHOWN,
    Table,
    error_table,
    file_table,
    segment_table,
    silence_table,
    tap_table,
    topic_table,
    transfer_table,
    type_table,
    violation_table,
)
from specwire.runtime.spark.report.text import THIN_SPACE
from tests.runtime.spark.report.findings import FINDINGS, HOSTILE, TAP
from tests.runtime.spark.report.summary import CLIENT, FIRST, LAST, SUMMARY


def head(table: Table) -> tuple[str, ...]:
    """Return the headings of a table."""
    return tuple(column.name for column in table.columns)


def drawn(table: Table | None) -> Table:
    """Return a table that is there."""
    assert table is not None
    return table


def test_types_are_counted_for_each_tap() -> None:
    """With few taps each has its column; the last ones are the sum and the octets."""
    table = type_table(SUMMARY)
    assert head(table) == ("Message", "Sent by", "server", "client", "All taps", "Octets")
    assert table.rows == (
        ("Nom", "client", f"1{THIN_SPACE}201", "1", f"1{THIN_SPACE}202", "4.0 KiB"),
        ("(undecoded)", "client", "1", "0", "1", "6 B"),
    )
    assert [column.word for column in table.columns] == [True, True, False, False, False, False]
    narrow = type_table(SUMMARY, by_tap=False)
    assert head(narrow) == ("Message", "Sent by", "Messages", "Octets")
    assert narrow.rows[0] == ("Nom", "client", f"1{THIN_SPACE}202", "4.0 KiB")


def test_several_protocols_have_a_column() -> None:
    """One has none: it stands in the title."""
    other = TypeCount(CLIENT, "libfilemq", "Nom", "C", 2, 22)
    tap = TapCount(CLIENT, "libfilemq", 2, 22, 0, 0, FIRST, LAST)
    both = structs.replace(SUMMARY, types=(*SUMMARY.types, other), taps=(*SUMMARY.taps, tap))
    table = type_table(both)
    assert head(table)[:3] == ("Protocol", "Message", "Sent by")
    assert ("libfilemq", "Nom", "client", "", "2", "2", "22 B") in table.rows


def test_errors_name_their_tap() -> None:
    """The finding is the sentence of the decoder."""
    assert drawn(error_table(SUMMARY)).rows == ((HOSTILE, "length", "server", "1"),)


def test_messages_that_are_only_counted_are_in_no_table() -> None:
    """In the mode DROPMALFORMED the tables `_errors` are empty, and the note does not refer to them."""
    kept = structs.replace(SUMMARY, tables={"typed/filemq/_errors": 1})
    assert "_errors" in drawn(error_table(kept)).note
    dropped = structs.replace(SUMMARY, tables={"typed/filemq/_errors": 0})
    assert "_errors" not in drawn(error_table(dropped)).note


def test_tasks_are_told_with_their_service() -> None:
    table = topic_table(FINDINGS)
    assert table is not None
    assert [row[0] for row in table.rows] == [HOSTILE, "netbox: sync", "(files)"]


def test_violations_of_the_concurrent_reading_come_first() -> None:
    """Peers that do not wait for each other break the strict one by the thousand, and no harm is done."""
    counts = tuple(reversed(FINDINGS.violation_counts))
    table = drawn(violation_table(structs.replace(FINDINGS, violation_counts=counts)))
    assert [row[0] for row in table.rows] == ["concurrent", "strict"]


def test_violations_that_are_not_listed_are_counted() -> None:
    """One conversation with 40 violations, of which the answers list 9 and 7 of two kinds: 24 others."""
    findings = Findings(
        violation_counts=(
            ViolationCount("flux", "concurrent", "unexpected", "Event", 1, 9),
            ViolationCount("flux", "concurrent", "sender", "Event", 1, 7),
            ViolationCount("flux", "strict", "unexpected", "Event", 1, 2),
        ),
        totals=(Total("flux", "concurrent", 40), Total("flux", "strict", 2)),
    )
    table = drawn(violation_table(findings))
    assert table.values == (
        ("concurrent", "Event", "unexpected", 1, 9),
        ("concurrent", "Event", "sender", 1, 7),
        ("concurrent", "(not listed)", None, None, 24),
        ("strict", "Event", "unexpected", 1, 2),
    )
    assert table.note.endswith(
        "without harm. 16 of 40 violations of the concurrent reading are listed in the answers."
    )


def test_errors_that_are_not_shown_are_counted() -> None:
    """30 findings with 30, 29, ... 1 messages: 465 messages, and those of the first twenty are 410."""
    errors = tuple(structs.replace(SUMMARY.errors[0], field=f"f{n}", messages=n) for n in range(30, 0, -1))
    taps = (structs.replace(SUMMARY.taps[0], errors=465),)
    table = drawn(error_table(structs.replace(SUMMARY, errors=errors, taps=taps)))
    assert len(table.rows) == ERRORS_SHOWN
    assert "410 of 465 messages that did not decode are counted here." in table.note
    # The summary has the findings of the most frequent errors of all protocols only.
    table = drawn(error_table(structs.replace(SUMMARY, errors=(), taps=taps)))
    assert "0 of 465 messages that did not decode are counted here." in table.note
    whole = (structs.replace(SUMMARY.taps[0], errors=0),)
    assert error_table(structs.replace(SUMMARY, errors=(), taps=whole)) is None


def test_cut_lists_say_of_how_many() -> None:
    """The totals are exact, whatever the findings keep."""
    numbers = {"topics": 57, "files": 1140, "silences": 101, "transfers": 403}
    findings = structs.replace(
        FINDINGS,
        silences=FINDINGS.silences[:1] * 100,
        totals=tuple(Total("filemq", name, number) for name, number in numbers.items()),
    )
    summary = structs.replace(SUMMARY, transfers=SUMMARY.transfers * 200)
    tables = (
        topic_table(findings),
        file_table(findings),
        silence_table(findings, {}),
        transfer_table(summary, findings),
    )
    assert [len(drawn(table).rows) for table in tables] == [3, 2, SILENCES_SHOWN, TRANSFERS_SHOWN]
    assert [drawn(table).note.rpartition(". ")[2] for table in tables] == [
        "3 of 57 topics are shown.",
        f"2 of 1{THIN_SPACE}140 files are shown.",
        "20 of 101 silences are shown.",
        "20 of 403 conversations are shown.",
    ]


def test_segments_that_were_read_are_not_counted_as_set_aside() -> None:
    """One cannot be read; the others were read and have a remark."""
    told = (SUMMARY.segments.told[0], *(SetAside(1, f"{n}.parquet", "partial", "known") for n in range(30)))
    segments = structs.replace(SUMMARY.segments, told=told)
    table = drawn(segment_table(structs.replace(SUMMARY, segments=segments)))
    assert len(table.rows) == SEGMENTS_SHOWN
    assert table.note == "1 could not be read and is set aside (quarantined). The latest 20 are shown."


def test_silences_tell_who_and_for_how_long() -> None:
    """The conversation where the peer has no name; times alone where all are of one day."""
    table = drawn(silence_table(FINDINGS, {}))
    assert table.rows[:2] == (
        ("c1", TAP, "client", "03:04:07.000", "spoke again", "4.0 s"),
        (HOSTILE, TAP, "server", "03:04:09.000", "silent to the end", "5.0 s"),
    )


def test_missing_messages_have_a_column_where_there_are_any() -> None:
    assert head(tap_table(SUMMARY))[-1] == "Dropped"
    gap = structs.replace(SUMMARY.taps[0], missing=12, last="2026-01-03T00:00:00.000000+00:00")
    table = tap_table(structs.replace(SUMMARY, taps=(gap,)))
    assert head(table)[-1] == "Missing"
    assert table.rows[0][2:4] == ("2026-01-02 03:04:05", "2026-01-03 00:00:00")
    assert table.rows[0][-1] == "12"


def test_many_taps_are_bounded_and_those_with_faults_stay() -> None:
    """A hundred peers that were started once each; the one that dropped messages saw least."""
    many = [TapCount(f"peer-{n}-5f0", "filemq", 1000 + n, 1, 0, 0, FIRST, LAST) for n in range(99)]
    table = tap_table(
        structs.replace(SUMMARY, taps=(TapCount("worst-1-5f0", "filemq", 1, 1, 0, 7, FIRST, LAST), *many))
    )
    assert len(table.rows) == TAPS_SHOWN
    assert [row[0] for row in table.rows[:2]] == ["worst-1-5f0", "peer-60-5f0"]
    assert table.note == "40 of 100 rows are shown."
