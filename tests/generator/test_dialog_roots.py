"""Dialogs that nobody declared: what the rules of a grammar draw becomes the dialog that a profile would declare."""

from __future__ import annotations

import shutil
from pathlib import Path

import msgspec
import pytest

from specwire.generator.ir.dialogs import Dialog
from specwire.generator.pipeline import compile_protocol
from tests.generator.compiling import compiled, faults

GRAMMARS = Path(__file__).parents[2] / "grammars"
MESSAGES = "".join(f"{name} = %x0{number}\n" for number, name in enumerate("ABDEF", start=1))


def dialogs(folder: Path, grammar: str, profile: str = "") -> list[Dialog]:
    return list(compiled(folder, grammar + MESSAGES, profile).protocol.dialogs)


def test_filemq_needs_no_declaration(tmp_path: Path) -> None:
    """From its published grammar alone FILEMQ gets the very automata that its profile asks for."""
    folder = tmp_path / "filemq"
    folder.mkdir()
    shutil.copyfile(GRAMMARS / "filemq" / "grammar.abnf", folder / "grammar.abnf")
    text = (folder / "grammar.abnf").read_text("utf-8").replace("create | delete", "create / delete")
    (folder / "grammar.abnf").write_text(text, encoding="utf-8")
    bare, declared = compile_protocol(folder), compile_protocol(GRAMMARS / "filemq")
    (found,), (wanted,) = bare.protocol.dialogs, declared.protocol.dialogs
    assert msgspec.structs.replace(found, name=wanted.name) == wanted
    assert [warning.code for warning in bare.warnings].count("W410") == 1


def test_alternatives_side_by_side_repeat(tmp_path: Path) -> None:
    """The shape of CMB1's dialog: one exchange after the other, without an end."""
    (dialog,) = dialogs(tmp_path, "talk = C:A *S:B / S:D / C:E\n")
    assert [state.name for state in dialog.strict] == ["USE", "C_A"]
    assert [phase.name for phase in dialog.concurrent.phases] == ["USE"]


@pytest.mark.parametrize("rule", ["C:A *S:B", "*( C:A S:B ) / C:D", "[ C:A ] S:B / C:D"])
def test_other_shapes_stay_as_they_are_written(tmp_path: Path, rule: str) -> None:
    (dialog,) = dialogs(tmp_path, f"talk = {rule}\n")
    assert dialog.strict[0].name == "START"


def test_rule_made_of_dialog_rules_is_the_whole(tmp_path: Path) -> None:
    (dialog,) = dialogs(tmp_path, "whole = open *use\nopen = C:A S:B\nuse = C:D / S:E\n")
    assert (dialog.name, dialog.rule, dialog.roles) == ("whole", "whole", ("C", "S"))
    assert dialog.labels == ("C:A", "S:B", "C:D", "S:E")


def test_error_rule_ends_the_dialog(tmp_path: Path) -> None:
    (dialog,) = dialogs(tmp_path, "talk = C:A *( C:D ( S:B / Errors ) )\nErrors = S:E / S:F\n")
    assert dialog.concurrent.errors == ("S:E", "S:F")
    (plain,) = dialogs(tmp_path, "talk = C:A *( C:D ( S:B / error ) )\nerror = S:E C:F\n")
    assert plain.concurrent.errors == (), "an error is one message"


def test_profile_orders_and_names_the_roles(tmp_path: Path) -> None:
    profile = 'name = "demo"\n' + "".join(
        f'[roles.{letter}]\nname = "{name}"\nsocket = "PAIR"\n' for letter, name in (("S", "s"), ("C", "c"))
    )
    (dialog,) = dialogs(tmp_path, "talk = *( C:A / P:B / S:D )\n", profile)
    assert dialog.roles == ("S", "C", "P")


def test_case_of_a_role_does_not_matter(tmp_path: Path) -> None:
    (dialog,) = dialogs(tmp_path, "talk = *( c:A S:B / C:D s:E )\n")
    assert (dialog.roles, dialog.labels) == (("C", "S"), ("C:A", "S:B", "C:D", "S:E"))


def test_rule_of_a_role_can_be_a_dialog(tmp_path: Path) -> None:
    """A name with a role in front is a name like any other."""
    (dialog,) = dialogs(tmp_path, "C:use = C:A / C:B\n")
    assert (dialog.name, dialog.rule) == ("C-use", "C:use")


def test_profile_can_say_that_there_is_none(tmp_path: Path) -> None:
    assert dialogs(tmp_path, "talk = *( C:A S:B )\n", 'name = "demo"\ndialogs = []\n') == []


def test_senders_are_known_without_a_declaration(tmp_path: Path) -> None:
    messages = compiled(tmp_path, "talk = *( C:A S:B )\n" + MESSAGES).protocol.messages
    assert {message.name: message.senders for message in messages if message.senders} == {
        "A": ("C",),
        "B": ("S",),
    }


@pytest.mark.parametrize("rule", ["C:A B", "C:A talk", "C:A turn\nturn = S:B talk", "17C:A", "0C:A"])
def test_rule_that_cannot_be_a_dialog_is_no_error(tmp_path: Path, rule: str) -> None:
    """Nobody said that it is one; its messages have a codec all the same, and the reason is told."""
    assert faults(tmp_path, f"talk = {rule}\n{MESSAGES}", 'name = "demo"\nmessages = ["A", "B"]\n') == []
    found = compiled(tmp_path, f"talk = {rule}\n{MESSAGES}", 'name = "demo"\nmessages = ["A", "B"]\n')
    assert found.protocol.dialogs == ()
    assert "W406" in {warning.code for warning in found.warnings}


def test_dialog_rule_with_the_name_of_a_message_is_explained(tmp_path: Path) -> None:
    """XRAP writes ``delete = C:DELETE``, and names are not case-sensitive."""
    found = compiled(tmp_path, f"delete = C:DELETE S:B\n{MESSAGES}", 'name = "demo"\nmessages = ["A", "B"]\n')
    (warning,) = (warning for warning in found.warnings if warning.code == "W406")
    assert warning.help == (
        "names are not case-sensitive, so it is the dialog rule 'delete' itself: rename one of them"
    )
