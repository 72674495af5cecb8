"""The Java decoder as it is emitted: what its layout says, and that no name or text of a grammar breaks the source."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from specwire.generator import ir
from specwire.generator.emit.java import EMITTER
from specwire.generator.emit.java_reading import readings, tag_statements
from specwire.generator.emit.java_source import Call, comment, java_string, method_name, package_name
from specwire.generator.pipeline import compile_protocol
from tests.generator.compiling import compiled

GRAMMARS = Path(__file__).parents[2] / "grammars"

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


def test_a_good_message_is_read_value_after_value(tmp_path: Path) -> None:
    """PING by its tag and its one integer; a list of octets is left to the tables, and its message with it."""
    protocol = compiled(tmp_path, GRAMMAR).protocol
    ping, *others = readings(protocol)
    assert not others
    assert ping.told == ("tag0 == 0xaa01L",)
    assert tag_statements(protocol) == ["long tag0 = in.head(0, 2);"]
    assert list(ping.statements) == [
        "in.begin(1, 0);",
        "in.open(0);",
        "in.constant(2, 0xaa01L);",
        "in.integer(0, 4);",
        "in.close();",
        "return in.done(0);",
    ]


def test_of_two_messages_with_one_tag_the_first_is_meant(tmp_path: Path) -> None:
    """What the tables alone read hides the second from the quick reading, too."""
    protocol = compiled(tmp_path, GRAMMAR).protocol
    ping, data = protocol.messages
    twin = msgspec.structs.replace(ping, tags=data.tags)
    assert not readings(msgspec.structs.replace(protocol, messages=(data, twin)))


@pytest.mark.parametrize(
    "name", ["cmb1", "cmb1_json", "filemq", "flux", "libfilemq", "norfab", "norfab_ascii", "zre"]
)
def test_every_message_of_ours_is_read_quickly(name: str) -> None:
    """But for ZMTP's, which are told by patterns."""
    protocol = compile_protocol(GRAMMARS / name).protocol
    assert protocol is not None
    assert [reading.message.name for reading in readings(protocol)] == [m.name for m in protocol.messages]


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
