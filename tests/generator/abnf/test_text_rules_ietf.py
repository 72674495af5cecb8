"""Texts that the rules of IETF grammars match or refuse, by the verdict of another implementation.

The grammars are those inside the `abnf` package. Some of them take rules from others; the package links them when
they are loaded, and the tests link the texts in the same way.
"""

from __future__ import annotations

import importlib
import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from specwire.generator.abnf.syntax import (
    Alternation,
    Concatenation,
    Element,
    Option,
    Reference,
    Repetition,
    Rule,
    Rulelist,
)
from specwire.generator.abnf.text_rules import TextRule, compile_text_rule
from specwire.generator.diagnostics import Diagnostics
from specwire.generator.passes.grammar import Grammar
from specwire.generator.passes.resolve import resolve_names
from tests.cases import each_case
from tests.generator.abnf.test_conformance import NOWHERE, read, rules_of

VECTORS = json.loads((Path(__file__).parents[2] / "vectors" / "abnf-match.json").read_text(encoding="utf-8"))
PREFIXES_OF = 1
"""Texts of a recursive rule of which every prefix is matched; such a match costs more."""


@cache
def linked(module: str) -> Rulelist:
    """Return the rules of a grammar, with those it takes from others under the names it gives them."""
    imported = importlib.import_module(f"abnf.grammars.{module}").Rule.__dict__.get("_imported_rules", ())
    taken: list[Rule] = []
    for name, rule in imported:
        source = type(rule).__module__.rpartition(".")[2]
        taken.append(alias(name, f"{source}--{rule.name}"))
        taken.extend(prefixed(linked(source), f"{source}--"))
    aliases = {rule.name.lower() for rule in taken}
    own = [rule for rule in read("\n".join(rules_of(module)))[0].rules if rule.name.lower() not in aliases]
    return Rulelist((*own, *dict.fromkeys(taken)))


def alias(name: str, target: str) -> Rule:
    return Rule(name, None, Reference(target, None, NOWHERE), False, (), (), NOWHERE, NOWHERE)


def prefixed(rulelist: Rulelist, prefix: str) -> list[Rule]:
    defined = {rule.name.lower() for rule in rulelist.rules}

    def renamed(element: Element) -> Element:
        match element:
            case Reference(name=name) if name.lower() in defined:
                return replace(element, name=prefix + name)
            case Alternation(items=items) | Concatenation(items=items):
                return replace(element, items=tuple(map(renamed, items)))
            case Repetition(element=inner) | Option(element=inner):
                return replace(element, element=renamed(inner))
        return element

    return [replace(r, name=prefix + r.name, definition=renamed(r.definition)) for r in rulelist.rules]


@cache
def resolved(grammar: str) -> Grammar:
    return resolve_names([linked(grammar)], diagnostics=Diagnostics())


@cache
def matcher(grammar: str, rule: str) -> TextRule:
    found = Diagnostics()
    compiled = compile_text_rule(resolved(grammar), Reference(rule, None, NOWHERE), found)
    assert compiled is not None, [fault.render() for fault in found]
    return compiled


def test_the_vectors_are_all_there() -> None:
    assert len(VECTORS) == 293
    assert sum(len(vector["match"]) for vector in VECTORS) == 1_166
    assert sum(len(vector["refuse"]) for vector in VECTORS) == 518


def rules_with_texts(grammar: str) -> list[dict[str, Any]]:
    return [vector for vector in VECTORS if vector["grammar"] == grammar]


# Those of a grammar go to one worker, which reads it once.
every_grammar = pytest.mark.parametrize(
    "grammar",
    [
        pytest.param(name, marks=pytest.mark.xdist_group(f"texts of {name}"))
        for name in dict.fromkeys(vector["grammar"] for vector in VECTORS)
    ],
)
every_rule = each_case("vector", rules_with_texts, named=lambda vector: vector["rule"])


@every_grammar
@every_rule
def test_the_verdict_is_the_same(grammar: str, vector: dict[str, Any]) -> None:
    rule = matcher(grammar, vector["rule"])
    assert [text for text in vector["match"] if not rule.match(text).matches] == []
    assert [text for text in vector["refuse"] if rule.match(text).matches] == []


@every_grammar
@every_rule
def test_a_text_stops_at_the_character_that_is_wrong(grammar: str, vector: dict[str, Any]) -> None:
    """Every prefix of a text that matches can go on; a character that no rule has stops it."""
    rule = matcher(grammar, vector["rule"])
    for text in vector["match"][: PREFIXES_OF if rule.recursive else None]:
        assert all(rule.match(text[:end]).offset == end for end in range(len(text)))
        assert rule.match(text + "\ud800").offset == len(text), "no grammar of these has this character"
