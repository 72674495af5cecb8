"""What ABNF text means: syntax nodes, their places, the comments that belong to a rule."""

from __future__ import annotations

import re

import pytest

from specwire.generator.abnf.dialect import Dialect
from specwire.generator.abnf.parser import CORE_GRAMMAR, core_rules, parse_grammar
from specwire.generator.abnf.syntax import (
    Alternation,
    CharVal,
    Concatenation,
    Element,
    NumRange,
    NumVal,
    Option,
    ProseVal,
    Reference,
    Repetition,
    Rulelist,
)
from specwire.generator.diagnostics import Diagnostics, Source, Span

NOWHERE = Span(Source("", ""), 1, 1, 1, 1)


def parse(text: str, dialect: Dialect = "rfc5234") -> Rulelist:
    """Read a grammar that has no error."""
    diagnostics = Diagnostics()
    rulelist = parse_grammar(Source("grammar.abnf", text), dialect=dialect, diagnostics=diagnostics)
    diagnostics.raise_errors()
    return rulelist


def definition(text: str, dialect: Dialect = "rfc5234") -> Element:
    (rule,) = parse(f"rule = {text}\n", dialect).rules
    return rule.definition


def codes(text: str, dialect: Dialect = "rfc5234") -> list[str]:
    diagnostics = Diagnostics()
    parse_grammar(Source("grammar.abnf", text), dialect=dialect, diagnostics=diagnostics)
    return [found.code for found in diagnostics]


def ref(name: str, role: str | None = None) -> Reference:
    return Reference(name, role, NOWHERE)


def num(*values: int) -> NumVal:
    return NumVal(values, NOWHERE)


def string(text: str, *, case_sensitive: bool = False) -> CharVal:
    return CharVal(text, case_sensitive, NOWHERE)


def repeat(minimum: int, maximum: int | None, element: Element) -> Repetition:
    return Repetition(minimum, maximum, element, NOWHERE)


def either(*items: Element) -> Alternation:
    return Alternation(items, NOWHERE)


def row(*items: Element) -> Concatenation:
    return Concatenation(items, NOWHERE)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a", ref("a")),
        ("a b / c", either(row(ref("a"), ref("b")), ref("c"))),
        ("a (b / c)", row(ref("a"), either(ref("b"), ref("c")))),
        ("(a b) c", row(row(ref("a"), ref("b")), ref("c"))),
        ("((a))", ref("a")),
        ("[a b]", Option(row(ref("a"), ref("b")), NOWHERE)),
        ("[ [a] ]", Option(Option(ref("a"), NOWHERE), NOWHERE)),
        ("4OCTET", repeat(4, 4, ref("OCTET"))),
        ("0OCTET", repeat(0, 0, ref("OCTET"))),
        ("31%x00", repeat(31, 31, num(0))),
        ("*a", repeat(0, None, ref("a"))),
        ("2*a", repeat(2, None, ref("a"))),
        ("*5a", repeat(0, 5, ref("a"))),
        ("2*5(a / b)", repeat(2, 5, either(ref("a"), ref("b")))),
        ("*[a]", repeat(0, None, Option(ref("a"), NOWHERE))),
        ('"Read;y"', string("Read;y")),
        ('%i"ready"', string("ready")),
        ('%s"ready"', string("ready", case_sensitive=True)),
        ('""', string("")),
        ("%d13.10", num(13, 10)),
        ("%xaA.BB", num(0xAA, 0xBB)),
        ("%B101", num(5)),
        ("%x0000041", num(0x41)),
        ("%d48-57", NumRange(48, 57, NOWHERE)),
        ("%b0-1", NumRange(0, 1, NOWHERE)),
        ("%x10000-10FFFF", NumRange(0x10000, 0x10FFFF, NOWHERE)),
        ("<any text; really>", ProseVal("any text; really", NOWHERE)),
    ],
)
def test_elements_of_the_standard(text: str, expected: Element) -> None:
    assert definition(text) == expected


@pytest.mark.parametrize(
    ("text", "expected", "code"),
    [
        ("a | b / c", either(ref("a"), ref("b"), ref("c")), "W103"),
        ("C:OHAI", ref("OHAI", "C"), "W104"),
        ("ping_ok", ref("ping_ok"), "W105"),
        ("0xFF.FE", num(0xFF, 0xFE), "W106"),
        ("0x41-5A", NumRange(0x41, 0x5A, NOWHERE), "W106"),
        ("%00", num(0), "W107"),
        ("%FF.BA", num(0xFF, 0xBA), "W107"),
        ("%BE", num(0xBE), "W107"),
        ("%d'M'", num(0x4D), "W108"),
        ("%x'OK'", num(0x4F, 0x4B), "W108"),
        ('"A"-"Z"', NumRange(0x41, 0x5A, NOWHERE), "W109"),
        ("%signature", ref("signature"), "W110"),
        ("* ( a )", repeat(0, None, ref("a")), "W111"),
        ("*[ a b ]", repeat(0, None, row(ref("a"), ref("b"))), "W112"),
        ("a\n/ b", either(ref("a"), ref("b")), "W113"),
        ("a\n| b", either(ref("a"), ref("b")), "W113"),
        ("a\n\n  / b", either(ref("a"), ref("b")), "W115"),
        ("a\n; note\n  / b", either(ref("a"), ref("b")), "W115"),
    ],
)
def test_elements_of_the_dialect(text: str, expected: Element, code: str) -> None:
    """What ZeroMQ specifications add is read, with a warning; RFC 5234 alone refuses it."""
    assert definition(text, "zeromq") == expected
    assert code in codes(f"rule = {text}\n", "zeromq")
    if code != "W112":  # RFC 5234 allows an option to be repeated
        assert code.replace("W", "E") in codes(f"rule = {text}\n", "rfc5234")


REFUSED = """
"x""y"   [b](c)   "x"y   2@OCTET   5*2a   @   a@/   /@a   a@/@/@b   ()   []   (a   a)   *   1*2*3a
"a   %s"a   %s'a'   'a'   <a   %   %x   %b2   %d1a   %x1.2-3   %x1.   %x9-1   %x110000
a@=@b   a@b@=/@c   a.b   a,@b   {a}   a\u00a0b   "\u00e9"   a\nb
"""


@pytest.mark.parametrize("dialect", ["rfc5234", "zeromq"])
@pytest.mark.parametrize(
    "text", [word.replace("@", " ") for word in re.split(r"   |(?<!a)\n", REFUSED.strip())]
)
def test_refused_in_both_dialects(text: str, dialect: Dialect) -> None:
    found = codes(f"before = a\nrule = {text}\nafter = a\n", dialect)
    assert [code for code in found if code.startswith("E")]


def test_all_faults_of_a_file_are_reported_and_the_other_rules_read() -> None:
    text = 'one = (\ntwo = %x01\nthree = "x""y" 5*2a\nstray\nfour = / a\nfive = a\n'
    diagnostics = Diagnostics()
    rulelist = parse_grammar(Source("g.abnf", text), dialect="rfc5234", diagnostics=diagnostics)
    assert [(d.code, d.span.line) for d in diagnostics] == [
        ("E122", 1),
        ("E134", 3),
        ("E132", 3),
        ("E102", 4),
        ("E121", 5),
    ]
    assert [rule.name for rule in rulelist.rules] == ["two", "three", "five"]


def test_comments_belong_to_the_rule_they_touch() -> None:
    text = """\
; A section, about no rule.

; The first rule
;   in two lines
first = a ; trailing
        ; more
      / b ; last
        ; below
; The second rule
second = ";" <;> ; after quotes
"""
    first, second = parse(text).rules
    assert [c.text for c in first.leading] == ["The first rule", "in two lines"]
    assert [c.text for c in first.trailing] == ["trailing", "more", "last", "below"]
    assert [c.text for c in second.leading] == ["The second rule"]
    assert [c.text for c in second.trailing] == ["after quotes"]
    assert (first.trailing[0].span.line, first.trailing[0].span.column) == (5, 11)


def test_every_node_has_its_place() -> None:
    text = "  first = a\n\n  C:third =  a [ b ]\n     / 4OCTET ; note\n"
    _, rule = parse(text, "zeromq").rules
    assert (str(rule.name_span), rule.name_span.end_column) == ("grammar.abnf:3:3", 10)
    assert (rule.span.line, rule.span.column, rule.span.end_line, rule.span.end_column) == (3, 3, 4, 14)
    assert isinstance(rule.definition, Alternation)
    row_, octets = rule.definition.items
    assert isinstance(row_, Concatenation) and isinstance(octets, Repetition)
    assert (row_.items[1].span.column, row_.items[1].span.end_column) == (16, 21)
    assert (octets.span.column, octets.element.span.column, octets.span.end_column) == (8, 9, 14)


@pytest.mark.parametrize("indent", ["   ", "    ", "\t", "  \t"])
@pytest.mark.parametrize("dialect", ["rfc5234", "zeromq"])
def test_a_grammar_may_be_indented_as_a_whole(indent: str, dialect: Dialect) -> None:
    text = f"\n{indent}one = a\n{indent}   / b\n\n{indent}; two\n{indent}two =\n{indent}  c\n"
    one, two = parse(text, dialect).rules
    assert one.definition == either(ref("a"), ref("b"))
    assert one.name_span.column == len(indent) + 1
    assert [comment.text for comment in two.leading] == ["two"]
    assert codes(text, dialect) == []


def test_a_name_may_stand_above_its_definition() -> None:
    (rule,) = parse("name ; what it is\n  = a\n").rules
    assert (rule.name, rule.definition, rule.trailing[0].text) == ("name", ref("a"), "what it is")


@pytest.mark.parametrize("text", ["a = b", "a = b\n", "a = b\r\n", "a = b\r\n    \r\n\r\n", "\na = b  \n"])
def test_line_ends(text: str) -> None:
    (rule,) = parse(text).rules
    assert rule.definition == ref("b")


def test_incremental_alternatives_are_marked() -> None:
    assert [rule.incremental for rule in parse("a = b\na =/ c\n").rules] == [False, True]


def test_rules_inside_another_text_keep_their_places() -> None:
    source = Source("profile.toml", 'abnf = """\nrule = a | b\n"""\n')
    diagnostics = Diagnostics()
    text = "\nrule = a | b\n\n"
    (rule,) = parse_grammar(source, dialect="zeromq", diagnostics=diagnostics, text=text).rules
    assert str(rule.span) == "profile.toml:2:1"
    assert "2 | rule = a | b" in next(iter(diagnostics)).render()


def test_deep_and_huge_input_is_a_diagnostic() -> None:
    assert "E138" in codes("a = " + "(" * 3000 + "b" + ")" * 3000)
    assert "E122" in codes("a = " + "[" * 3000)
    assert codes("a = %d" + "9" * 5000) == ["E130"]
    assert codes("a = " + "9" * 5000 + "b") == ["E133"]
    assert codes("a = " + "0" * 5000 + "1b") == []


def test_core_rules_are_those_of_appendix_b() -> None:
    assert codes(CORE_GRAMMAR) == []
    assert len(core_rules()) == 16
    assert core_rules()["OCTET"] == NumRange(0, 255, NOWHERE)
    assert core_rules()["CRLF"] == row(ref("CR"), ref("LF"))
