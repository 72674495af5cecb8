"""Numbers that a profile declares as times: what the IR, the package, tables and comparisons say about them."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from specwire.generator import ir
from specwire.generator.compare import compare
from specwire.generator.compare.comparison import Change, Effect, Verdict
from specwire.generator.diagnostics import SpecError
from specwire.generator.emit.reference.columns import view_columns
from specwire.generator.emit.tables import columns, derived
from tests.generator.compiling import compiled, faults
from tests.generator.editions import field, message, protocol
from tests.generator.packages import imported

GRAMMAR = """\
tick = %x01 sent-at Sent-At-Time fraction size laps entry [late]
other = %x02 sent-at
sent-at = 8OCTET
Sent-At-Time = 8OCTET
fraction = 4OCTET
size = 1OCTET
laps = count *lap
count = 1OCTET
lap = 4OCTET
entry = name-length name made
name-length = 1OCTET
name = *VCHAR
made = 10DIGIT
late = 1*10OCTET
"""
PROFILE = """
name = "demo"
messages = ["tick", "other"]
[types.sent-at]
type = "integer"
timestamp = "ms"
[types."other.sent-at"]
timestamp = "s"
epoch = "1900-01-01T00:00+00:00"
[types.Sent-At-Time]
type = "integer"
signed = true
timestamp = "ns"
[types.fraction]
type = "float"
timestamp = "s"
epoch = "1980-01-06T12:30:00.5Z"
[types.lap]
type = "integer"
[types.laps]
timestamp = "us"
[types.made]
type = "decimal"
timestamp = "s"
[types.late]
type = "varint"
timestamp = "ms"
"""


def by_name(message: ir.Message) -> dict[str, ir.Field]:
    return {field.name: field for field in message.fields}


def test_fields_know_their_unit_and_epoch(tmp_path: Path) -> None:
    """In one spelling, of any kind of number; a message may have another unit."""
    tick, other = compiled(tmp_path, GRAMMAR, PROFILE).protocol.messages
    found = {name: field.timestamp for name, field in by_name(tick).items() if field.timestamp}
    assert found == {
        "sent_at": ir.Timestamp("ms", "1970-01-01"),
        "sent_at_time": ir.Timestamp("ns", "1970-01-01"),
        "fraction": ir.Timestamp("s", "1980-01-06T12:30:00.500000Z"),
        "laps": ir.Timestamp("us", "1970-01-01"),
        "made": ir.Timestamp("s", "1970-01-01"),
        "late": ir.Timestamp("ms", "1970-01-01"),
    }
    assert by_name(other)["sent_at"].timestamp == ir.Timestamp("s", "1900-01-01")
    assert by_name(tick)["sent_at"].unit == "milliseconds since 1970-01-01 UTC"
    assert by_name(tick)["fraction"].unit == "seconds since 1980-01-06T12:30:00.500000Z"
    assert by_name(other)["sent_at"].unit == "seconds since 1900-01-01 UTC"


def test_tables_have_a_column_for_each(tmp_path: Path) -> None:
    """Its name differs from those of the fields, ignoring case; the number keeps its column."""
    made = compiled(tmp_path, GRAMMAR, PROFILE).protocol
    tick = made.messages[0]
    assert [(column.name, column.of, column.many) for column in derived(tick, made)] == [
        ("sent_at_time_", "sent_at", False),
        ("sent_at_time_time", "sent_at_time", False),
        ("fraction_time", "fraction", False),
        ("laps_time", "laps", True),
        ("made_time", "made", False),
        ("late_time", "late", False),
    ]
    about = dict(columns(tick, made)[0].metadata)
    assert (about["timestamp"], about["epoch"]) == ("ms", "1970-01-01")
    rows = {row[0]: row[1:3] for row in view_columns(tick, made).rows}
    assert rows["sent_at"] == ("decimal(20,0)", "never")
    assert rows["sent_at_time_"] == ("timestamp", "outside the years 0001 to 9999")
    assert rows["laps_time"] == ("array<timestamp>", "outside the years 0001 to 9999")


def test_a_number_in_a_record_has_only_metadata(tmp_path: Path) -> None:
    grammar = "tick = %x01 *pair\npair = key at\nkey = 2OCTET\nat = 4OCTET\n"
    profile = 'name = "demo"\n[types.key]\ntype = "integer"\n[types.at]\ntype = "integer"\ntimestamp = "s"\n'
    made = compiled(tmp_path, grammar, profile).protocol
    (pairs,) = made.messages[0].fields[1:]
    assert isinstance(pairs.type, ir.ListType) and isinstance(pairs.type.element, ir.RecordType)
    assert pairs.type.element.fields[1].timestamp == ir.Timestamp("s", "1970-01-01")
    assert derived(made.messages[0], made) == ()


def test_bits_can_be_a_time(tmp_path: Path) -> None:
    grammar = "tick = %x01 head\nhead = 8OCTET\n"
    profile = 'name = "demo"\n[types.head.bits]\nkind = 4\nat = { width = 60, timestamp = "us" }\n'
    made = compiled(tmp_path, grammar, profile).protocol
    assert by_name(made.messages[0])["at"].timestamp == ir.Timestamp("us", "1970-01-01")
    profile = profile.replace("kind = 4", 'kind = { width = 4, timestamp = "s", spare = true }')
    assert faults(tmp_path, grammar, profile) == ["E402 demo/profile.toml:3:21"]


def test_the_package_says_so(tmp_path: Path) -> None:
    """The value is the number; its documentation and the schemas of pyarrow and Spark have the meaning."""
    made = compiled(tmp_path, GRAMMAR, PROFILE).protocol
    with imported(tmp_path, [msgspec.structs.replace(made, name="clock")], "columns", "schema") as (clock,):
        found = clock.Other(3908988800)
        assert clock.decode(found.encode()) == found and found.sent_at == 3908988800
        arrow = clock.columns.SCHEMA.field("Other").type.field("sent_at")
        assert (arrow.metadata[b"timestamp"], arrow.metadata[b"epoch"]) == (b"s", b"1900-01-01")
        tick = clock.schema.TABLES["Tick"]
        assert tick["fraction_time"].simpleString() == "fraction_time:timestamp"
        assert tick["laps_time"].simpleString() == "laps_time:array<timestamp>"
        assert tick["fraction_time"].metadata["epoch"] == "1980-01-06T12:30:00.500000Z"
        assert tick["fraction_time"].nullable and not tick["fraction"].nullable
        source = (tmp_path / "clock/codec.py").read_text()
    assert "0 to 2**64 - 1; in seconds since 1900-01-01 UTC." in source


LINES = 'name = "demo"\nmessages = ["tick"]\n'


@pytest.mark.parametrize(
    ("table", "code"),
    [
        ('[types.name]\ntimestamp = "s"\n', "E402 demo/profile.toml:4:1"),  # text
        ('[types.lap]\ntimestamp = "s"\n', "E402 demo/profile.toml:4:1"),  # not a field: its list is
        ('[types.entry]\ntimestamp = "s"\n', "E402 demo/profile.toml:4:1"),  # a record
        ('[types.count]\ntimestamp = "s"\n', "E402 demo/profile.toml:4:1"),  # computed
        ('[types.size]\nconstant = 3\ntimestamp = "s"\n', "E402 demo/profile.toml:5:1"),
        ('[types.size]\ntype = "boolean"\ntimestamp = "s"\n', "E402 demo/profile.toml:5:1"),
        ('[types.size]\ntimestamp = "days"\n', "E502 demo/profile.toml:4:1"),
        ('[types.size]\nepoch = "1970-01-01"\n', "E510 demo/profile.toml:4:1"),
        ('[types.size]\ntimestamp = "s"\nunit = "s"\n', "E510 demo/profile.toml:5:1"),
        ('[types.size]\ntimestamp = "s"\nepoch = "1970"\n', "E510 demo/profile.toml:5:1"),
        ('[types.size]\ntimestamp = "s"\nepoch = "1970-02-30"\n', "E510 demo/profile.toml:5:1"),
        ('[types.size]\ntimestamp = "s"\nepoch = "1970-01-01T00:00+01:00"\n', "E510 demo/profile.toml:5:1"),
        (
            '[types.size]\nbits = { at = { width = 8, epoch = "1970-01-01" } }\n',
            "E510 demo/profile.toml:4:28",
        ),
        ('[types.size]\ntimestamp = "s"\nbits = { at = 8 }\n', "E510 demo/profile.toml:4:1"),
    ],
)
def test_declarations_without_effect(tmp_path: Path, table: str, code: str) -> None:
    assert faults(tmp_path, GRAMMAR, LINES + table) == [code]


def test_the_error_says_where_to_declare_it(tmp_path: Path) -> None:
    with pytest.raises(SpecError) as caught:
        compiled(tmp_path, GRAMMAR, LINES + '[types.lap]\ntimestamp = "s"\n')
    (error,) = (found for found in caught.value.diagnostics if found.code == "E402")
    assert error.message == "no field 'lap' is a number, so it cannot be a timestamp"
    assert error.help == "declare it for the rule of a number, or of a list of numbers, that is a field"


def changes(old: ir.Field, new: ir.Field) -> list[Change]:
    return list(compare(*(protocol(message("demo", 1, one)) for one in (old, new))).changes)


def time(unit: ir.TimeUnit, epoch: str = "1970-01-01") -> ir.Field:
    """Return an integer that is a time, as the compiler does."""
    meaning = ir.Timestamp(unit, epoch)
    return field("at", ir.IntegerType(8), timestamp=meaning, unit=meaning.words)


PLAIN = field("at", ir.IntegerType(8))


@pytest.mark.parametrize(
    ("old", "new", "verdict", "effect"),
    [
        (time("s"), time("ms"), Verdict.NO, Effect.REWRITE),
        (time("s"), time("s", "1900-01-01"), Verdict.NO, Effect.REWRITE),
        (PLAIN, time("s"), Verdict.YES, Effect.COLUMN),
        (time("s"), PLAIN, Verdict.YES, Effect.APPEND),
        (msgspec.structs.replace(PLAIN, unit="ms"), time("ms"), Verdict.DEPENDS, Effect.COLUMN),
    ],
)
def test_another_meaning_is_reported(old: ir.Field, new: ir.Field, verdict: Verdict, effect: Effect) -> None:
    (change,) = changes(old, new)
    assert (change.kind, change.old, change.new) == ("unit", old.unit, new.unit)
    assert (change.old_reads_new.verdict, change.new_reads_old.verdict) == (verdict, verdict)
    assert change.tables.effect is effect


def test_another_meaning_inside_a_record_is_reported(tmp_path: Path) -> None:
    old, new = (
        field("log", ir.ListType(1, ir.RecordType("entry", "Entry", (one,))))
        for one in (time("s"), time("ms"))
    )
    (change,) = changes(old, new)
    assert (change.name, change.kind) == ("log[].at", "unit")
    assert (change.old_reads_new.verdict, change.tables.effect) == (Verdict.NO, Effect.REWRITE)
    assert changes(new, new) == []
