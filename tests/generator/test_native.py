"""Source of the compiled codec: its digest, and the representation of values."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from specwire.generator.emit import native
from specwire.generator.emit.native_names import Member, Value
from specwire.generator.pipeline import compile_protocol
from specwire.generator.support.layout import Boolean, Coding, Digits, Float, Integer, Varint
from specwire.generator.support.plan import Bit, Expect, Extent, Loop, Nest, Number, TakeOctets, TakeText
from tests.generator.compiling import compiled
from tests.house.repository import ROOT

GRAMMAR = """
demo    = *( PING / DATA )
PING    = %xAA %x01 number
DATA    = %xAA %x02 name entries
number  = 4OCTET        ; a number in network order
name    = size *OCTET   ; text
entries = size *entry
entry   = size *OCTET   ; text
size    = OCTET         ; number of octets
"""


def source(folder: Path) -> str:
    return native.emit(compiled(folder, GRAMMAR).protocol)


def test_only_what_is_used_is_taken_from_others(tmp_path: Path) -> None:
    text = source(tmp_path)
    assert "    split,\n" in text
    assert "split_until" not in text
    assert "insert_size" not in text


@pytest.mark.parametrize("name", sorted(path.parent.name for path in ROOT.glob("grammars/*/grammar.abnf")))
def test_every_package_fits_the_page(name: str) -> None:
    text = native.emit(compile_protocol(ROOT / "grammars" / name).protocol)
    # A comparison with octets, or with many frames, is one line however long.
    long = [line.strip() for line in text.split("\n") if len(line) > 110]
    assert [line for line in long if "\\x" not in line and not line.startswith("if ")] == []


def test_the_digest_is_that_of_the_code(tmp_path: Path) -> None:
    """Another grammar text that says the same is the same code; another layout is not."""
    protocol = compiled(tmp_path, GRAMMAR).protocol
    digest = native.native_digest(protocol)
    assert f'BUILD = "{digest}"' in native.emit(protocol)
    again = msgspec.structs.replace(protocol, digest="f" * 64)
    assert native.native_digest(again) == digest
    assert native.emit(again) != native.emit(protocol)
    wider = compiled(tmp_path, GRAMMAR.replace("4OCTET", "8OCTET")).protocol
    assert native.native_digest(wider) != digest


def test_the_digest_covers_what_is_compiled_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    protocol = compiled(tmp_path, GRAMMAR).protocol
    digest = native.native_digest(protocol)
    for name in native.SUPPORT:
        monkeypatch.setattr(native, "SUPPORT", tuple(kept for kept in native.SUPPORT if kept != name))
        assert native.native_digest(protocol) != digest
        monkeypatch.undo()


def test_only_sources_that_compare_letters_are_compiled_against_that(tmp_path: Path) -> None:
    protocol = compiled(tmp_path, GRAMMAR).protocol
    assert native.support_files(native.emit(protocol)) == native.SUPPORT
    folded = msgspec.structs.replace(protocol, folded=True)
    assert native.support_files(native.emit(folded)) == (*native.SUPPORT, native.MATCHING)


def test_every_support_file_in_cython_counts() -> None:
    found = {path.name for path in (ROOT / "generator" / "support").glob("native*.p*")}
    found.remove(
        "native_stream.pyx"
    )  # no package is compiled against it, and it says itself which build it is
    assert found == {*native.SUPPORT, native.MATCHING}


@pytest.mark.parametrize(
    ("coding", "present", "c_type"),
    [
        (Integer(1), True, "uint8_t"),
        (Integer(3), True, "uint32_t"),
        (Integer(5), True, "uint64_t"),
        (Integer(3, signed=True), True, "int32_t"),
        (Varint(maximum=4), True, "uint32_t"),
        (Varint(signed="zigzag"), True, "int64_t"),
        (Digits(maximum=2), True, "uint8_t"),
        (Digits(maximum=2, signed=True), True, "int8_t"),
        (Digits(signed=True), True, "int64_t"),
        (Float(8), True, "object"),
        (Boolean(), True, "object"),
        (Integer(4), False, "object"),
    ],
)
def test_integers_that_are_always_present_are_c_integers(coding: Coding, present: bool, c_type: str) -> None:
    assert Member(Number("number", coding), present).c_type == c_type


@pytest.mark.parametrize(
    ("bit", "c_type"),
    [
        (Bit("number", 3, 8), "uint8_t"),
        (Bit("number", 3, 12), "uint16_t"),
        (Bit("number", 0, 64), "uint64_t"),
        (Bit("number", 3, 1), "uint8_t"),
        (Bit("number", 3, 1, boolean=True), "object"),
    ],
)
def test_bits_are_the_smallest_integers_that_hold_them(bit: Bit, c_type: str) -> None:
    assert Member(bit, True).c_type == c_type
    assert Member(bit, False).c_type == "object"


TEXT = TakeText("[]", Extent("slot", slot="[]#"))
COUNT = Number("[]#", Integer(1), ("[]",))


@pytest.mark.parametrize(
    ("op", "held"),
    [
        (Loop("items", (COUNT, TEXT), "items#"), True),
        (Loop("items", (Loop("[]", (Number("[]", Integer(2)),), "[]#"),)), True),
        (Loop("items", (COUNT, TEXT), "items#", pairs="first"), True),
        (Loop("items", (TakeOctets("[]", Extent("fixed", 16), uuid="big"),)), True),
        (Loop("items", (Expect("[]", b"<", "'<'"), COUNT, TEXT), until=b"."), True),
        (Loop("items", (Expect("[]", b"a", "'a'", folded=True), COUNT, TEXT), until=b"."), False),
        (Loop("items", (Nest("[]", "Pair"),), "items#"), False),
        (Loop("items", (Number("[]", Varint()),)), False),
        (Loop("items", (Number("[]", Digits()), Expect("", b" ", "' '"))), False),
        (TEXT, False),
    ],
)
def test_only_octets_that_are_written_as_they_were_read_are_held(op: Value, held: bool) -> None:
    """A varint can have more groups than needed, digits can begin with zeros, a record can hold padding, and letters
    can be in either case."""
    assert Member(op, True).is_held is held
