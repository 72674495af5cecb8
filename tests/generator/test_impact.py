"""Who must act after a change, which tables change, and how Markdown says so. Expected texts are written by hand."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from specwire.generator import ir
from specwire.generator.compare.comparison import Effect, Verdict
from specwire.generator.compare.impact import (
    Action,
    EditionChange,
    ProtocolChange,
    TableChange,
    compare_editions,
)
from specwire.generator.compare.markdown import write_comment, write_section
from specwire.generator.documents.editions import compile_document
from specwire.generator.pipeline import compile_protocol
from tests.generator.editions import field, message, protocol
from tests.generator.oven import OVEN, OVEN_2, OVEN_3

GRAMMARS = Path(__file__).parents[2] / "grammars"
REJECTED = "all other messages are read: the reader rejects this one, so a new peer must not send it"
CUT = "the value ends elsewhere, so what follows it is read at the wrong place"


@pytest.fixture(scope="module")
def editions(tmp_path_factory: pytest.TempPathFactory) -> list[ir.Protocol]:
    """The three editions of the oven."""
    path = tmp_path_factory.mktemp("documents") / "oven.md"
    found = []
    for text in (OVEN, OVEN_2, OVEN_3):
        path.write_text(text, encoding="utf-8")
        found.append(compile_document(path).protocol)
    return found


def test_the_same_edition_asks_nothing_of_anybody(editions: list[ir.Protocol]) -> None:
    change = compare_editions(editions[0], editions[0])
    assert (change.impact.actions, change.impact.tables, change.impact.must_act) == ((), (), False)
    assert (
        write_section(change)
        == "### Oven Protocol: Oven v1 (same)\n\nNothing changes for peers and tables.\n"
    )


def test_a_new_message(editions: list[ir.Protocol]) -> None:
    """The sender is the client, so it is the old server that does not know it."""
    impact = compare_editions(*editions[:2]).impact
    first, *others = impact.actions
    assert first == Action("S", "old", "C", "new", Verdict.DEPENDS, ("light",), (REJECTED,))
    assert {(one.reader_edition, one.subjects) for one in others} <= {
        ("old", ("dialog oven",)),
        ("new", ("dialog oven",)),
    }
    assert impact.tables == (TableChange("Light", Effect.COLUMN, "the column Light, and a new table"),)


def test_a_field_of_another_size(editions: list[ir.Protocol]) -> None:
    """Neither side reads the other; the column keeps its type or is rewritten."""
    impact = compare_editions(*editions[1:]).impact
    sides = [
        (one.reader, one.reader_edition, one.writer, one.writer_edition, one.verdict, one.subjects)
        for one in impact.actions
    ]
    assert sides == [
        ("S", "old", "C", "new", Verdict.NO, ("heat",)),
        ("S", "new", "C", "old", Verdict.NO, ("heat",)),
    ]
    assert impact.must_act
    (table,) = impact.tables
    assert (table.table, table.effect) == ("Heat", Effect.REWRITE)
    assert "degrees" in table.why


def test_roles_are_those_of_the_dialog_in_which_a_message_is_sent() -> None:
    """A message of NORFAB's broker to its workers is none for clients."""
    new = compile_protocol(GRAMMARS / "norfab", shown="norfab").protocol
    kept = tuple(one for one in new.messages if one.name != "MMI-worker")
    actions = compare_editions(msgspec.structs.replace(new, messages=kept), new).impact.actions
    assert [(one.reader, one.writer) for one in actions if one.subjects == ("MMI-worker",)] == [
        ("worker", "broker")
    ]


def test_flags_concern_all_peers() -> None:
    new = compile_protocol(GRAMMARS / "flux", shown="flux").protocol
    change = compare_editions(msgspec.structs.replace(new, flags=new.flags[:-1]), new)
    (action,) = change.impact.actions
    assert (action.reader, action.writer, action.subjects) == ("peer", "peer", ("flags",))
    assert change.impact.tables == ()


def test_a_protocol_without_roles() -> None:
    old = protocol(message("demo", 1, field("alpha", ir.IntegerType(1))))
    new = protocol(message("demo", 1, field("alpha", ir.IntegerType(2))))
    actions = compare_editions(old, new).impact.actions
    assert {(one.reader, one.writer) for one in actions} == {("peer", "peer")}


def test_a_rewrite_of_a_table_asks_something_of_its_owner() -> None:
    """Even where all peers read each other."""
    old = protocol(message("demo", 1, field("alpha", ir.OctetsType(ir.Length("fixed", 2)))))
    new = protocol(message("demo", 1, field("alpha", ir.IntegerType(2))))
    impact = compare_editions(old, new).impact
    assert [table.effect for table in impact.tables] == [Effect.REWRITE] and impact.must_act


def test_a_section_for_a_changelog(editions: list[ir.Protocol]) -> None:
    lines = write_section(compare_editions(*editions[1:])).splitlines()
    assert lines[0] == "### Oven Protocol: Oven v2 to Oven v3 (breaking)"
    assert "- `heat`: field `degrees` resized: was `integer, 2 octets`, is `integer, 4 octets`." in lines
    at = lines.index("Who must act:")
    assert lines[at + 1 : at + 4] == ["", "- The old S cannot read `heat` of the new C:", lines[at + 3]]
    assert lines[at + 3].startswith("    - ")
    assert any(line.startswith("- `Heat`: needs a rewrite: the column degrees changes") for line in lines)
    assert lines[-1] == (
        "Old and new peers cannot run side by side: update them together, or keep both packages."
    )


def test_names_have_no_meaning_in_markdown(editions: list[ir.Protocol]) -> None:
    odd = msgspec.structs.replace(editions[1], title="<b>*Oven*</b>\n# x", edition="v_2_ `x`")
    lines = write_section(compare_editions(editions[0], odd)).splitlines()
    assert lines[0] == r"### \<b\>\*Oven\*\</b\> \# x: Oven v1 to v\_2\_ \`x\` (conditional)"


def test_a_comment_for_a_pull_request(editions: list[ir.Protocol]) -> None:
    def change(old: int, new: int) -> EditionChange:
        return compare_editions(editions[old], editions[new])

    assert write_comment("main", ()) == "No protocol changed since `main`.\n"
    changes = (
        ProtocolChange("oven", "changed", change(1, 2)),
        ProtocolChange("stove", "changed", change(0, 0)),
        ProtocolChange("toaster", "removed"),
    )
    lines = write_comment("main", changes).splitlines()
    assert lines[0] == "## Protocols changed since `main`: 1 breaking, 1 same, 1 removed"
    heads = [line for line in lines if line.startswith("###")]
    assert heads == ["### Oven Protocol: Oven v2 to Oven v3 (breaking)", "### toaster: removed"]
    assert lines[-1] == "No effect on peers and tables: `stove`."
