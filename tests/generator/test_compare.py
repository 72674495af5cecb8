"""What a comparison finds: our own editions, asserted by hand and in full as golden files."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path

import pytest

from specwire.generator import ir
from specwire.generator.compare import compare
from specwire.generator.compare.comparison import Change, Comparison, Effect, Verdict, worst
from specwire.generator.pipeline import compile_protocol
from tests.golden_files import cases, check_golden

GRAMMARS = Path(__file__).resolve().parents[2] / "grammars"
NAMES = sorted(folder.name for folder in GRAMMARS.iterdir())
YES, DEPENDS, NO = Verdict.YES, Verdict.DEPENDS, Verdict.NO


@cache
def edition(name: str) -> ir.Protocol:
    return compile_protocol(GRAMMARS / name).protocol


@cache
def between(old: str, new: str) -> Comparison:
    return compare(edition(old), edition(new))


def the(comparison: Comparison, group: str, kind: str, name: str) -> Change:
    """The one change of that kind."""
    (found,) = (c for c in comparison.changes if (c.group, c.kind, c.name) == (group, kind, name))
    return found


def verdicts(change: Change) -> tuple[Verdict, Verdict]:
    """How the old reader reads new data, and the new reader old data."""
    return change.old_reads_new.verdict, change.new_reads_old.verdict


def written(comparison: Comparison) -> str:
    """A comparison as text, a change on three lines."""
    lines = [
        f"{comparison.old.name} -> {comparison.new.name}: {comparison.verdict}",
        f"old reads new: {comparison.old_reads_new}; new reads old: {comparison.new_reads_old}; {comparison.tables}",
    ]
    for change in comparison.changes:
        was, now = (repr(text) if text is not None else "nothing" for text in (change.old, change.new))
        lines += [
            f"\n[{change.group}] {change.subject} {change.name} {change.kind}: {was} -> {now}",
            f"    old reads new: {change.old_reads_new.verdict}: {change.old_reads_new.why}",
            f"    new reads old: {change.new_reads_old.verdict}: {change.new_reads_old.why}",
            f"    tables: {change.tables.effect}: {change.tables.why}",
        ]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("case", cases("compare"), ids=lambda case: case.name)
def test_whole_comparisons(case: Path) -> None:
    of = tomllib.loads((case / "case.toml").read_text("utf-8"))
    check_golden(case / "expected.txt", written(between(of["old"], of["new"])))


@pytest.mark.parametrize("name", NAMES)
def test_a_protocol_against_itself(name: str) -> None:
    comparison = between(name, name)
    assert comparison.changes == ()
    assert (comparison.verdict, comparison.old_reads_new, comparison.new_reads_old) == ("same", YES, YES)
    assert comparison.tables is Effect.APPEND


@pytest.mark.parametrize("old", NAMES)
@pytest.mark.parametrize("new", NAMES)
def test_backwards_the_readers_change_places(old: str, new: str) -> None:
    """Except for what a new peer may hold back and an old one goes on sending: whole messages, a stream."""
    forth, back = (
        [c for c in comparison.changes if c.subject not in ("message", "stream")]
        for comparison in (between(old, new), between(new, old))
    )
    assert worst(c.old_reads_new.verdict for c in forth) is worst(c.new_reads_old.verdict for c in back)
    assert worst(c.new_reads_old.verdict for c in forth) is worst(c.old_reads_new.verdict for c in back)


# CMB1 with JSON to CMB1


def test_flag_4_changed_its_meaning() -> None:
    comparison = between("cmb1_json", "cmb1")
    change = the(comparison, "flags", "meaning", "JSON")
    assert (change.old, change.new) == ("JSON 0x04, announces json", "NORESPONSE 0x04")
    assert verdicts(change) == (NO, NO)
    assert change.tables.effect is Effect.REWRITE
    assert comparison.verdict == "breaking"


def test_two_flags_are_new_and_an_old_reader_does_not_know_what_they_ask() -> None:
    comparison = between("cmb1_json", "cmb1")
    for name, value in (("PRIVATE", 0x20), ("STREAMING", 0x40)):
        change = the(comparison, "flags", "added", name)
        assert (change.old, change.new) == (None, f"{name} 0x{value:02x}")
        assert verdicts(change) == (DEPENDS, YES)
        assert change.tables.effect is Effect.APPEND
    assert not [c for c in comparison.changes if c.name == "UPSTREAM"]


@pytest.mark.parametrize("message", ["request", "response", "event", "keepalive"])
def test_the_signature_is_called_magic(message: str) -> None:
    change = the(between("cmb1_json", "cmb1"), message, "renamed", "signature")
    assert (change.old, change.new) == ("signature", "magic")
    assert verdicts(change) == (YES, YES)


@pytest.mark.parametrize("message", ["request", "response", "event"])
def test_the_json_frame_went_and_with_it_the_second_bit_of_the_payload(message: str) -> None:
    comparison = between("cmb1_json", "cmb1")
    removed = the(comparison, message, "removed", "json")
    assert removed.subject == "part"
    assert verdicts(removed) == (DEPENDS, DEPENDS)
    assert removed.tables.effect is Effect.APPEND
    payload = the(comparison, message, "presence", "payload")
    assert (payload.old, payload.new) == ("where flags & 0x06 is 0x02", "where flags & 0x02 is 0x02")


def test_requests_may_ask_for_no_response() -> None:
    change = the(between("cmb1_json", "cmb1"), "dialog rpc", "key", "pairing of replies")
    assert change.new == f"{change.old}; no reply where flags has 0x04"


def test_backwards_flag_4_breaks_as_well() -> None:
    back = between("cmb1", "cmb1_json")
    assert verdicts(the(back, "flags", "meaning", "NORESPONSE")) == (NO, NO)
    assert verdicts(the(back, "flags", "removed", "PRIVATE")) == (YES, DEPENDS)
    json = the(back, "request", "added", "json")
    assert json.tables.effect is Effect.COLUMN


# CMB1 to Flux


def test_keepalive_became_control_and_its_error_number_a_type() -> None:
    comparison, group = between("cmb1", "flux"), "keepalive -> control"
    renamed = the(comparison, group, "renamed", "keepalive")
    assert (renamed.old, renamed.new) == ("keepalive (C:keepalive)", "control (C:control)")
    assert verdicts(renamed) == (YES, YES)
    assert renamed.tables.effect is Effect.COLUMN
    field = the(comparison, group, "renamed", "errnum")
    assert (field.old, field.new, field.subject) == ("errnum", "type", "field")
    assert verdicts(field) == (DEPENDS, DEPENDS), "the comments say that it is another thing"
    assert field.tables.effect is Effect.COLUMN
    assert not [c for c in comparison.changes if c.subject == "message" and c.kind in ("added", "removed")]
    routes = the(comparison, group, "added", "routing")
    assert verdicts(routes) == (DEPENDS, YES)


@pytest.mark.parametrize("message", ["request", "response", "event"])
def test_the_topic_became_optional(message: str) -> None:
    change = the(between("cmb1", "flux"), message, "presence", "topic")
    assert change.new == "where flags & 0x01 is 0x01"
    assert verdicts(change) == (DEPENDS, YES)
    assert change.tables.effect is Effect.APPEND
    back = the(between("flux", "cmb1"), message, "presence", "topic")
    assert verdicts(back) == (YES, DEPENDS)


@pytest.mark.parametrize("message", ["request", "response", "event"])
def test_routes_became_text(message: str) -> None:
    change = the(between("cmb1", "flux"), message, "retyped", "routes")
    assert change.old == "octets, rest of the frame, at least 1"
    assert change.new == "text, rest of the frame, NUL at the end"
    assert verdicts(change) == (DEPENDS, DEPENDS)
    assert "UTF-8" in change.new_reads_old.why
    assert change.tables.effect is Effect.REWRITE


def test_the_letter_is_told_and_breaks_nothing() -> None:
    comparison = between("cmb1", "flux")
    assert the(comparison, "event", "letter", "routing").new == "forbidden"
    assert verdicts(the(comparison, "request", "letter", "topic")) == (YES, YES)


def test_flux_gained_a_stream_timers_and_error_numbers() -> None:
    comparison = between("cmb1", "flux")
    assert verdicts(the(comparison, "stream", "added", "framing")) == (DEPENDS, YES)
    assert the(comparison, "timers", "value", "expiry").new == "300 s"
    assert the(comparison, "timers", "added", "torpid").new == "30 s"
    assert the(comparison, "constants", "added", "EPROTO").new == "71"
    assert verdicts(the(between("flux", "cmb1"), "stream", "removed", "framing")) == (YES, NO)


def test_one_flag_was_added_from_cmb1_to_flux() -> None:
    comparison = between("cmb1", "flux")
    flags = [(c.name, c.kind) for c in comparison.changes if c.subject == "flag"]
    assert flags == [("USER1", "added")]
    assert comparison.verdict == "conditional"
    assert between("cmb1_json", "flux").verdict == "breaking"


# FILEMQ to libfilemq


def test_filemq_as_deployed_is_another_wire() -> None:
    comparison = between("filemq", "libfilemq")
    assert comparison.verdict == "breaking"
    assert verdicts(the(comparison, "OHAI", "value", "version")) == (NO, NO)
    assert verdicts(the(comparison, "NOM", "added", "sequence")) == (NO, NO)
    assert verdicts(the(comparison, "ICANHAZ", "resized", "path")) == (NO, NO)
    assert the(comparison, "CHEEZBURGER", "moved", "chunk").new == "CHEEZBURGER, field 8"
    assert verdicts(the(comparison, "WAT", "removed", "WAT")) == (YES, NO)
    assert not [c for c in comparison.changes if c.group in ("SRSLY", "RTFM")], (
        "the role in front is no change"
    )


def test_filemq_as_deployed_has_another_dialog() -> None:
    comparison = between("filemq", "libfilemq")
    assert verdicts(the(comparison, "dialog peering", "removed", "label S:Hugz")) == (YES, DEPENDS)
    again = the(comparison, "dialog peering", "added", "strict: C:Ohai")
    assert again.new == "C:Ohai, after C:Ohai S:OhaiOk"
    assert verdicts(again) == (DEPENDS, YES)
    assert the(comparison, "answers", "value", "S: any other fault").new == "Rtfm"
