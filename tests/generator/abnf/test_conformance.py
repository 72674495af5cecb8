"""Our reading of RFC 5234 beside that of another implementation, the `abnf` package."""

from __future__ import annotations

import importlib
import pkgutil
import re

import pytest

from specwire.generator.abnf.parser import parse_grammar
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

abnf_parser = pytest.importorskip("abnf.parser")
grammars = importlib.import_module("abnf.grammars")

NOWHERE = Span(Source("", ""), 1, 1, 1, 1)
MODULES = [module.name for module in pkgutil.iter_modules(grammars.__path__) if module.name != "misc"]


def rules_of(module: str) -> list[str]:
    """Return the text of each rule, with the first column free of white space."""
    rule = importlib.import_module(f"abnf.grammars.{module}").Rule
    lines = rule.grammar.splitlines() if isinstance(rule.grammar, str) else rule.grammar
    texts: list[str] = []
    for line in lines:
        if line[:1] in (" ", "\t", ";", "") and texts:
            texts[-1] += f"\n{line}" if line.strip() else ""
        elif line.strip():
            texts.append(line)
    return texts


def read(text: str) -> tuple[Rulelist, Diagnostics]:
    diagnostics = Diagnostics()
    return parse_grammar(Source("g", text), dialect="rfc5234", diagnostics=diagnostics), diagnostics


@pytest.mark.parametrize("module", MODULES)
def test_ietf_grammars_are_read(module: str) -> None:
    texts = rules_of(module)
    rulelist, diagnostics = read("\n".join(texts))
    assert [found.render() for found in diagnostics] == []
    assert [rule.name for rule in rulelist.rules] == [text.split("=")[0].strip() for text in texts]


@pytest.mark.parametrize("module", ["rfc5234", "rfc7405", "rfc3986", "rfc3629", "rfc8187", "rfc9116"])
def test_ietf_grammars_have_the_same_structure(module: str) -> None:
    for text in rules_of(module):
        (rule,) = read(text)[0].rules
        assert rule.definition == theirs(text), text


ONE_LINE = """
"x""y"   [b](c)   2@OCTET   *@(a)   *[a]   0OCTET   31%x00   a@/   /@a   ()   @   a@|@b   *2*a   a.b   a;c
"a   <a   <>   ""   %x   %b2   %d1a   %x1.2-3   %x1.   %x41.42.43   %x9-F   %D9   %s"a"   %I"a"   (a/b)c
C:a   a_b   %00   0xFF.FF   "A"-"Z"   %d'M'   %sig   (a)/(b)   a@=@b   a;"   <;>   ";"   1*[a]   a/b/(c@d)
"""
SEVERAL_LINES = [
    "a\n b",
    "a\nb",
    "( ; c\n a)",
    "a\n ;c\n b",
    "a\n\n b",
    "a\n;c\n b",
    "a\n \n b",
    '"\t"',
    "a\n/ b",
]


@pytest.mark.parametrize(
    "definition", [word.replace("@", " ") for word in re.split(r"   |\n", ONE_LINE.strip())]
)
def test_the_verdict_is_the_same(definition: str) -> None:
    text = f"rule = {definition}\nnext = %x01\n"
    assert bool(read(text)[1].errors) != accepts(text)


@pytest.mark.parametrize("definition", SEVERAL_LINES)
def test_the_verdict_on_layout_is_the_same(definition: str) -> None:
    text = f"rule = {definition}\nnext = %x01\n"
    assert bool(read(text)[1].errors) != accepts(text)


def accepts(text: str) -> bool:
    try:
        abnf_parser.ABNFGrammarRule("rulelist").parse_all(text.replace("\n", "\r\n"))
    except abnf_parser.ParseError:
        return False
    return True


def theirs(text: str) -> Element:
    """Return the definition as the other implementation reads it, as syntax nodes of ours."""
    tree = abnf_parser.ABNFGrammarRule("rule").parse_all(text.replace("\n", "\r\n") + "\r\n")
    elements = next(child for child in tree.children if child.name == "elements")
    return convert(elements.children[0])


def convert(node: object) -> Element:
    name, text = node.name, node.value  # type: ignore[attr-defined]
    inner = [child for child in node.children if child.name not in ("c-wsp", "literal")]  # type: ignore[attr-defined]
    match name:
        case "alternation" | "concatenation":
            items = tuple(convert(child) for child in inner)
            kind = Alternation if name == "alternation" else Concatenation
            return items[0] if len(items) == 1 else kind(items, NOWHERE)
        case "repetition":
            return convert(inner[0]) if len(inner) == 1 else repeated(inner[0].value, convert(inner[1]))
        case "option":
            return Option(convert(inner[0]), NOWHERE)
        case "rulename":
            return Reference(text, None, NOWHERE)
        case "char-val":
            return CharVal(text.partition('"')[2][:-1], text[:2].lower() == "%s", NOWHERE)
        case "num-val":
            return number(text)
        case "prose-val":
            return ProseVal(text[1:-1], NOWHERE)
        case _:
            return convert(inner[0])


def repeated(count: str, element: Element) -> Element:
    low, star, high = count.partition("*")
    greatest = (int(high) if high else None) if star else int(low)
    return Repetition(int(low or 0), greatest, element, NOWHERE)


def number(text: str) -> Element:
    base = {"b": 2, "d": 10, "x": 16}[text[1].lower()]
    if "-" in text:
        first, last = (int(part, base) for part in text[2:].split("-"))
        return NumRange(first, last, NOWHERE)
    return NumVal(tuple(int(part, base) for part in text[2:].split(".")), NOWHERE)
