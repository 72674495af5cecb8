"""Rules of a grammar for the page: linked text, railroad diagrams, and cross-references.

A name in a rule links to that rule. The published files are shown unchanged, faults included. Each
line has an address, and names in it are links too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from markupsafe import Markup, escape

from specwire.generator.abnf.parser import core_rules, parse_grammar
from specwire.generator.abnf.syntax import Element, Reference, Rule, write_element
from specwire.generator.diagnostics import Diagnostics, Source, Span
from specwire.generator.emit.reference.book import Book, File, GrammarRule
from specwire.generator.emit.reference.facts import Table
from specwire.generator.emit.reference.railroads import draw_rule
from specwire.generator.passes.grammar import Grammar, Key, key_of, references

_TOKENS = re.compile(r';.*|"[^"\n]*"|<[^>\n]*>|%[^\s]*|(?:[A-Za-z]:)?[A-Za-z][A-Za-z0-9_-]*|.', re.DOTALL)
_NOWHERE = Span(Source("", ""), 1, 1, 1, 1)
CORE = "core-rules"
LARGEST = 4000
"""Largest number of characters of a rule that is drawn."""
_TOO_LARGE = Markup("<p>Too large to draw; see the text below.</p>")


@dataclass(frozen=True, slots=True)
class RuleView:
    """Rule: its text and drawing, its position, and the rules that use it."""

    name: str
    anchor: str
    text: Markup
    drawing: Markup
    comment: str
    place: str
    place_href: str | None
    published: str | None
    mended_at: str
    reason: str
    used_by: tuple[tuple[str, str], ...]
    """Names and addresses of the rules that use it."""


@dataclass(frozen=True, slots=True)
class LineView:
    """Line of a published file: its number, address, and text with links."""

    number: int
    anchor: str
    text: Markup


@dataclass(frozen=True, slots=True)
class FileView:
    """Published grammar."""

    name: str
    lines: tuple[LineView, ...]


@dataclass(frozen=True, slots=True)
class RulesView:
    """The whole grammar."""

    rules: tuple[RuleView, ...]
    core: Table
    """Core rules of RFC 5234 that the rules use, each with its definition."""
    files: tuple[FileView, ...]


def rule_anchor(name: str, role: str | None = None) -> str:
    """Return the anchor of a rule; names are compared without case, and ``-`` equals ``_``."""
    folded = name.lower().replace("_", "-")
    return f"rule-{role.upper()}:{folded}" if role else f"rule-{folded}"


def line_anchor(file: str, line: int) -> str:
    """Return the anchor of a line of a published file."""
    return f"{file}-L{line}"


def view_rules(book: Book) -> RulesView:
    """Return the rules for the page."""
    trees = [_tree(rule) for rule in book.rules]
    grammar = Grammar(tuple(tree for tree in trees if tree is not None))
    core = tuple(_core(grammar))
    link = _linker(grammar, frozenset(name for name, _ in core))
    used = _used_by(grammar)
    views = [_rule(rule, tree, link, used) for rule, tree in zip(book.rules, trees, strict=True)]
    return RulesView(
        tuple(views),
        Table("Core rules in use", ("Name", "Definition"), core),
        tuple(_file(file, link) for file in book.files),
    )


def _tree(rule: GrammarRule) -> Rule | None:
    """Return the syntax tree of a rule; the compiler wrote its text, so it can be parsed."""
    parsed = parse_grammar(Source(rule.file, rule.text), dialect="zeromq", diagnostics=Diagnostics())
    return parsed.rules[0] if parsed.rules else None


def _linker(grammar: Grammar, core: frozenset[str]) -> Callable[[Reference], str | None]:
    """Return the function that maps a rule to its address; `core` are the core rules on the page."""

    def link(reference: Reference) -> str | None:
        rule = grammar.find(reference)
        if rule:
            return f"#{rule_anchor(rule.name, rule.role)}"
        return f"#{CORE}" if reference.name.upper() in core else None

    return link


def _rule(
    rule: GrammarRule,
    tree: Rule | None,
    link: Callable[[Reference], str | None],
    used: Mapping[Key, list[Rule]],
) -> RuleView:
    name = f"{rule.role}:{rule.name}" if rule.role else rule.name
    users = used.get(key_of(tree), []) if tree else []
    published = rule.file.endswith(".abnf")
    return RuleView(
        name=name,
        anchor=rule_anchor(rule.name, rule.role),
        text=_linked(rule.text, link),
        drawing=_draw(tree.definition, name, link) if tree and len(rule.text) <= LARGEST else _TOO_LARGE,
        comment=" ".join(rule.comments),
        place=f"{rule.file}, line {rule.line}",
        place_href=f"#{line_anchor(rule.file, rule.line)}" if published else None,
        published=rule.published,
        mended_at=rule.mended_at,
        reason=rule.reason,
        used_by=tuple((str(user), f"#{rule_anchor(user.name, user.role)}") for user in users),
    )


def _draw(definition: Element, name: str, link: Callable[[Reference], str | None]) -> Markup:
    return draw_rule(definition, f"Railroad diagram of rule {name}", link)


def _used_by(grammar: Grammar) -> dict[Key, list[Rule]]:
    """Return for each rule the rules that refer to it, each once, in order."""
    used: dict[Key, dict[Key, Rule]] = {}
    for rule in grammar.rules:
        for reference in references(rule.definition):
            found = grammar.find(reference)
            if found:
                used.setdefault(key_of(found), {})[key_of(rule)] = rule
    return {key: list(users.values()) for key, users in used.items()}


def _core(grammar: Grammar) -> Iterable[tuple[str, str]]:
    names = {
        reference.name.upper()
        for rule in grammar.rules
        for reference in references(rule.definition)
        if grammar.core(reference) is not None
    }
    for name, definition in core_rules().items():
        if name in names:
            yield name, write_element(definition)


def _file(file: File, link: Callable[[Reference], str | None]) -> FileView:
    lines = file.text.removesuffix("\n").split("\n")
    return FileView(
        file.name,
        tuple(
            LineView(number, line_anchor(file.name, number), _linked(line, link))
            for number, line in enumerate(lines, 1)
        ),
    )


def _linked(text: str, link: Callable[[Reference], str | None]) -> Markup:
    """Return ABNF text with links at rule names and with comments marked."""
    written: list[Markup] = []
    for token in _TOKENS.findall(text):
        if token.startswith(";"):
            written.append(Markup('<span class="comment">{}</span>').format(token))
            continue
        address = link(_reference(token)) if re.match(r"[A-Za-z]", token) else None
        written.append(Markup('<a href="{}">{}</a>').format(address, token) if address else escape(token))
    return Markup("").join(written)


def _reference(token: str) -> Reference:
    role, _, name = token.rpartition(":")
    return Reference(name, role or None, _NOWHERE)
