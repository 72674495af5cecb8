"""The Java decoder as it is emitted: what its layout says, and that no name or text of a grammar breaks the source."""

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


def emitted(protocol: ir.Protocol) -> str:
    text = EMITTER.emit(protocol)
    assert isinstance(text, str)
    return text


def test_the_layout_is_that_of_the_grammar(tmp_path: Path) -> None:
    """Fields in wire order, with their rules; only what is used is imported."""
    text = emitted(compiled(tmp_path, GRAMMAR).protocol)
    words = " ".join(text.split())
    assert 'new Field("number", "number", new Unsigned(4))' in words
    assert 'new Field("name", "name", new Text(Span.prefix(1)))' in words
    assert "new ListOf(1, new Octets(Span.prefix(1)), 0)" in words
    assert 'List.of(new Tag("aa01"))' in words
    assert "List.of(Selector.octets(0, 2))" in words
    assert "import specwire.generated.java.ListOf;" in text
    assert "import specwire.generated.java.Pairs;" not in text


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
