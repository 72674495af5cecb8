"""With ``--partial``, the sound messages are compiled, and each other one is reported (W423)."""

from __future__ import annotations

from pathlib import Path

import pytest

from specwire.generator.diagnostics import SpecError
from specwire.generator.pipeline import Compilation, compile_protocol
from tests.generator.compiling import write
from tests.generator.packages import imported

OPEN = "OPEN = %x01 number\nnumber = 2OCTET ; an integer\n"


def sound(folder: Path, grammar: str, profile: str = "") -> Compilation:
    """Compile the sound messages of a grammar."""
    return compile_protocol(write(folder, grammar, profile), shown="demo", partial=True)


def messages(compilation: Compilation) -> list[str]:
    """Return the names of the messages."""
    return [message.name for message in compilation.protocol.messages]


def omitted(compilation: Compilation) -> list[str]:
    """Return the places and texts of the warnings about omitted messages."""
    found = [warning for warning in compilation.warnings if warning.code == "W423"]
    return [f"{warning.span.line}: {warning.message}" for warning in found]


def test_a_message_with_a_fault_of_its_own(tmp_path: Path) -> None:
    compiled = sound(tmp_path, OPEN + "TELL = %x02 one two\none = *OCTET\ntwo = *OCTET\n")
    assert messages(compiled) == ["OPEN"]
    (found,) = omitted(compiled)
    assert found.startswith("3: nothing is generated from message 'TELL': 'one' in message 'TELL' has no end")
    assert not [warning for warning in compiled.warnings if warning.code == "W203"]


def test_a_name_without_a_definition_costs_the_messages_that_use_it(tmp_path: Path) -> None:
    compiled = sound(tmp_path, OPEN + "TELL = %x02 pair\npair = number nobody\nASK = %x03 number\n")
    assert messages(compiled) == ["OPEN", "ASK"]
    assert omitted(compiled) == ["4: nothing is generated from message 'TELL': rule 'nobody' is not defined"]


def test_a_rule_that_cannot_be_read_costs_the_messages_that_use_it(tmp_path: Path) -> None:
    compiled = sound(tmp_path, OPEN + "TELL = %x02 list\nlist = 5*2OCTET\n")
    assert messages(compiled) == ["OPEN"]
    (found,) = omitted(compiled)
    assert found.startswith("4: nothing is generated from message 'TELL': ")


def test_a_message_that_cannot_be_read_is_reported(tmp_path: Path) -> None:
    compiled = sound(tmp_path, OPEN + "TELL = %x02 ^ number\n")
    assert messages(compiled) == ["OPEN"]
    (found,) = omitted(compiled)
    assert found.startswith("3: a rule is not used: ")


def test_two_messages_with_the_same_octets_are_both_omitted(tmp_path: Path) -> None:
    compiled = sound(tmp_path, OPEN + "TELL = %x02 number\nASK = %x02 number\n")
    assert messages(compiled) == ["OPEN"]
    assert len(omitted(compiled)) == 2


def test_roles_stay_in_the_names_of_messages(tmp_path: Path) -> None:
    grammar = 'd = C:go S:go\nC:go = "a" one two\nS:go = "b" one\none = *OCTET\ntwo = *OCTET\n'
    compiled = sound(tmp_path, grammar)
    assert [message.class_name for message in compiled.protocol.messages] == ["SGo"]


def test_no_sound_message_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SpecError) as refused:
        sound(tmp_path, "TELL = %x02 nobody\n")
    assert [found.code for found in refused.value.diagnostics] == ["W405", "E201"]


def test_a_fault_of_the_profile_stays_an_error(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="E502"):
        sound(tmp_path, OPEN, 'name = "demo"\ntitel = "Demo"\n')
    with pytest.raises(SpecError, match="E511"):
        sound(tmp_path, OPEN, 'name = "demo"\n[types.nobody]\ntype = "text"\n')


def test_nothing_changes_for_a_protocol_without_faults(tmp_path: Path) -> None:
    folder = write(tmp_path, OPEN + "TELL = %x02 number\n")
    assert compile_protocol(folder, partial=True).protocol == compile_protocol(folder).protocol


def test_the_octets_of_an_omitted_message_are_no_other_message(tmp_path: Path) -> None:
    compiled = sound(tmp_path, OPEN + "TELL = %x02 one two\none = *OCTET\ntwo = *OCTET\n")
    with imported(tmp_path / "out", [compiled.protocol], "codec") as [package]:
        assert package.decode([b"\x01\x00\x05"]) == package.Open(5)
        with pytest.raises(package.DecodeError):
            package.decode([b"\x02\x00\x05"])
