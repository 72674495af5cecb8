"""Errors that name the reason: nothing that only follows from another error is reported."""

from __future__ import annotations

from pathlib import Path

import pytest

from specwire.generator.diagnostics import SpecError
from tests.generator.compiling import compiled, faults

HEAD = 'name = "demo"\nmessages = ["m"]\n'
COUNTED = '[types.n]\ncounts = "item"\ncounting = "octets"\n'
LENGTH = '[types.len]\nscope = "next"\n'


def help_of(folder: Path, grammar: str, profile: str) -> list[str]:
    """Return the helps of the errors."""
    with pytest.raises(SpecError) as caught:
        compiled(folder, grammar, profile)
    return [found.help or "" for found in caught.value.diagnostics if found.code.startswith("E")]


def test_a_list_of_faulty_values_is_no_further_error(tmp_path: Path) -> None:
    grammar = (
        "m = %x01 n *item\nn = OCTET\nitem = a / b\na = %x01 len port\nb = %x02 len\nlen = 2OCTET\n"
        "port = 2OCTET ; an integer\n"
    )
    assert faults(tmp_path, grammar, HEAD + COUNTED + LENGTH) == ["E406 demo/grammar.abnf:4:14"]


def test_alternatives_that_cannot_be_distinguished_are_the_only_error(tmp_path: Path) -> None:
    grammar = "m = %x01 n *item\nn = OCTET\nitem = a / b\na = %x01 x\nb = x x\nx = OCTET ; an integer\n"
    assert faults(tmp_path, grammar, HEAD + COUNTED) == ["E419 demo/grammar.abnf:3:8"]


def test_the_length_of_an_integer_is_declared_otherwise(tmp_path: Path) -> None:
    grammar = "m = %x01 len port\nlen = 2OCTET\nport = 2OCTET ; an integer\n"
    (help,) = help_of(tmp_path, grammar, HEAD + LENGTH)
    assert 'counts = "port"' in help and 'scope = "rest"' in help


def test_a_keyword_inside_a_frame_is_one_error(tmp_path: Path) -> None:
    grammar = 'm = %x01 mode %x00 rest\nmode = "netascii" / "octet"\nrest = *OCTET\n'
    (help,) = help_of(tmp_path, grammar, HEAD)
    assert help.startswith("give each keyword a rule")


def test_a_size_with_a_range_is_told_apart_from_one_in_several_forms(tmp_path: Path) -> None:
    grammar = "m = length %x01 data\nlength = %x02-FF\ndata = *OCTET\n"
    (help,) = help_of(tmp_path, grammar, HEAD + '[types.length]\ncounts = "*"\nplus = 1\n')
    assert "without a range" in help
