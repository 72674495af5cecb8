"""The Java decoder as it is emitted: its operations, and that no name or text of a grammar breaks the source."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from specwire.generator import ir
from specwire.generator.emit.java import EMITTER
from specwire.generator.emit.java_source import Call, comment, java_string, method_name, package_name
from tests.generator.compiling import compiled

GRAMMAR = """
demo    = *( PING / DATA )
PING    = %xAA %x01 number
DATA    = %xAA %x02 name entries
number  = 4OCTET        ; a number in network order
name    = size *VCHAR
entries = size *entry
entry   = size *OCTET   ; octets
size    = OCTET         ; number of octets
"""


CHECKED = "A = %xA1 n body sum\nn = OCTET ; an integer\nbody = *OCTET\nsum = 4OCTET\n"

PROFILE = """
name = "demo"
[types.n]
counts = ["body"]
plus = 1
[types.sum]
type = "integer"
checksum = "{}"
over = ["body"]
"""


def emitted(protocol: ir.Protocol) -> str:
    text = EMITTER.emit(protocol)
    assert isinstance(text, str)
    return text


def test_operations_are_those_of_the_grammar(tmp_path: Path) -> None:
    """They stand in wire order, with names and rules; only what is used is imported."""
    text = emitted(compiled(tmp_path, GRAMMAR).protocol)
    words = " ".join(text.split()).replace("( ", "(")
    assert 'new Number(new Field("number", "number"), 0, Store.LONG, Coding.unsigned(4))' in words
    prefixed = "Extent.counted(Count.here(Coding.unsigned(1)))"
    assert f'new TakeText(new Field("name", "name"), 0, {prefixed}, false, -1)' in words
    assert 'new Loop(new Field("entries", "entries"), 1, Count.here(Coding.unsigned(1)), 0,' in words
    assert f'new TakeOctets(new Field("", "entries"), Operation.ITEM, {prefixed}, 0, Long.MAX_VALUE)' in words
    assert "List.of(new Selector(0, 2))" in words and 'List.of(new Tag("aa01"))' in words
    assert '"`name` STRING, `entries` ARRAY<BINARY>"' in words
    assert "import specwire.generated.java.Loop;" in text
    assert "import specwire.generated.java.Nest;" not in text


def test_counts_and_checksums_have_registers(tmp_path: Path) -> None:
    """A number that stands apart from what it counts is kept, and so are the positions that a checksum covers."""
    words = " ".join(emitted(compiled(tmp_path, CHECKED, PROFILE.format("crc32c")).protocol).split())
    assert 'new Keep(new Field("n", "n"), 0, Coding.unsigned(1))' in words
    assert 'Extent.counted(Count.kept(new Field("n", "n"), 0, 1))' in words
    assert 'new Mark(1), new TakeOctets(new Field("body", "body")' in words.replace("( ", "(")
    assert 'new Keep(new Field("sum", "sum"), 3, Coding.unsigned(4))' in words
    assert 'new Verify(new Field("sum", "sum"), 3, 4, Checksum.CRC32C, 1, 2)' in words


def test_a_checksum_of_a_python_function_has_no_java_decoder(tmp_path: Path) -> None:
    assert not emitted(compiled(tmp_path, CHECKED, PROFILE.format("zlib:crc32")).protocol)


def test_the_edition_cannot_leave_its_comment(tmp_path: Path) -> None:
    """What a document is called is anybody's text: it neither ends a comment nor is an escape of Java's."""
    protocol = compiled(tmp_path, GRAMMAR).protocol
    text = emitted(msgspec.structs.replace(protocol, edition="a */ class B {} \\u002a/ <b>"))
    before, _, _ = text.partition("public final class Decode")
    assert before.count("*/") == 1 and "\\u" not in before and "<b>" not in before


@pytest.mark.parametrize(
    ("class_name", "method"), [("Ping", "ping"), ("GetClass", "getClass_"), ("Switch", "switch_")]
)
def test_methods_have_names_of_their_own(class_name: str, method: str) -> None:
    assert method_name(class_name) == method


def test_reserved_words_are_no_packages() -> None:
    assert [package_name(name) for name in ("flux", "new")] == ["flux", "new_"]


def test_texts_are_literals_in_ascii() -> None:
    assert java_string('a"\\\u00e9\n') == '"a\\"\\\\\\u00e9\\n"'
    assert comment("@see\nnext") == ["&#64;see", "next"]


def test_calls_are_broken_where_they_do_not_fit() -> None:
    """Arguments stand in lines of their own then, two steps in."""
    call = Call("new Field", ('"name"', Call("new Text", ("x" * 100,)))).followed(".asOptional()")
    assert call.lines(1, "return ", ";") == [
        "    return new Field(",
        '            "name",',
        "            new Text(",
        f"                    {'x' * 100})).asOptional();",
    ]
