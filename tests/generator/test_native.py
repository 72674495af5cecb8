"""The compiled codec as it is emitted: what it reads like, and when it counts as another one."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from specwire.generator import ir
from specwire.generator.emit import native
from specwire.generator.emit.native_types import Slot
from specwire.generator.pipeline import compile_protocol
from tests.generator.compiling import compiled
from tests.generator.layouts import field
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


def body(text: str, head: str) -> list[str]:
    """The lines of the function or class that begins with `head`, without those that are empty."""
    lines = text[text.index(head) :].split("\n")[1:]
    end = next(n for n, line in enumerate(lines) if line and not line.startswith(" "))
    return [line.strip() for line in lines[:end] if line]


def test_a_decoder_reads_like_one_of_ours(tmp_path: Path) -> None:
    text = source(tmp_path)
    assert body(text, "cdef object _decode_ping(") == [
        "cdef Run run",
        "cdef bytes frame",
        "if count != 1:",
        "return None",
        "cdef Ping made = Ping.__new__(Ping)",
        "frame = frame_at(frames, 0)",
        "if frame is None:",
        "return None",
        "run = run_of(frame)",
        "if left(&run) < 6:",
        "return None",
        'if not same(run.at, b"\\xaa\\x01", 2):',
        "return None",
        "made._number = number(run.at + 2, 4)",
        "run.at += 6",
        "if run.at != run.end:",
        "return None",
        "return made",
    ]


def test_an_encoder_makes_a_frame_of_fixed_size_in_one_piece(tmp_path: Path) -> None:
    text = source(tmp_path).partition("cdef class Ping(")[2]
    method = text.partition("    cdef list frames__(self):\n")[2].partition("\n\n")[0]
    assert [line.strip() for line in method.split("\n")] == [
        "cdef list made",
        "cdef bytes frame",
        "cdef uint8_t* start",
        "frame = bytes_of(NULL, 6)",
        "start = <uint8_t*>octets_of(frame)",
        'memcpy(start, <const char*>b"\\xaa\\x01", 2)',
        "put_number(start + 2, self._number, 4)",
        "made = [frame]",
        "return made",
    ]


def test_messages_are_told_apart_by_an_integer(tmp_path: Path) -> None:
    lines = body(source(tmp_path), "cdef int _kind_of(")
    assert lines[-5:] == ["if tag == 0xaa01:", "return 1", "elif tag == 0xaa02:", "return 2", "return 0"]


def test_only_what_is_used_is_taken_from_others(tmp_path: Path) -> None:
    text = source(tmp_path)
    assert "    split_prefixed,\n" in text
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


def test_every_support_file_in_cython_counts() -> None:
    found = {path.name for path in (ROOT / "generator" / "support").glob("native*.p*")}
    found.remove(
        "native_stream.pyx"
    )  # no package is compiled against it, and it says itself which build it is
    assert found == set(native.SUPPORT)


@pytest.mark.parametrize(
    ("type", "nullable", "kept_as"),
    [
        (ir.IntegerType(1), False, "uint8_t"),
        (ir.IntegerType(3), False, "uint32_t"),
        (ir.IntegerType(5), False, "uint64_t"),
        (ir.IntegerType(4), True, "object"),
        (ir.TextType(ir.Length("prefix", 1)), False, "object"),
    ],
)
def test_integers_that_are_always_there_are_c_integers(type: ir.Type, nullable: bool, kept_as: str) -> None:
    assert Slot(field("number", type, nullable=nullable), False).c_type == kept_as


TEXT = ir.TextType(ir.Length("prefix", 1))


@pytest.mark.parametrize(
    ("type", "lazy"),
    [
        (ir.ListType(1, TEXT), True),
        (ir.ListType(1, ir.ListType(1, ir.IntegerType(2))), True),
        (ir.PairsType(1, TEXT, split="first"), True),
        (ir.ListType(1, ir.RecordType("pair", "Pair", (field("number", ir.IntegerType(1)),))), False),
        (TEXT, False),
    ],
)
def test_only_octets_that_are_written_as_they_were_read_are_kept(type: ir.Type, lazy: bool) -> None:
    """A record can hold padding or a size of several forms: what it was read from is not what is written."""
    assert Slot(field("items", type), False).is_lazy is lazy
