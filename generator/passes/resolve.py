"""Resolution of names: merges repeated definitions and reports undefined names.

The input is the syntax trees of texts that share their names: a published grammar and the rules
that its profile adds. The output is a `Grammar`. Cases that occur in specifications:

- a rule defined twice with equal definitions: merged, the comments of both places kept (W201);
- a rule defined twice with different definitions: an error (E202), except for ``chunk = chunk``, which names
  an external type and is replaced by the real rule (W207);
- ``FRAME``, ``msg`` and ``JSON`` without a rule: external types (W206);
- any other undefined name: an error (E201), unless the profile declares a type for it;
- rules that contain themselves and alternatives that are never reached (W208 to W210), found by
  `specwire.generator.passes.recursion` and `specwire.generator.passes.alternatives`.

The dialect ``rfc5234`` allows none of this, and does not report names that differ only in case.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from pathlib import PurePath

from specwire.generator.abnf.dialect import Dialect
from specwire.generator.abnf.parser import core_rules
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
from specwire.generator.diagnostics import Diagnostics, Span
from specwire.generator.passes.alternatives import check_alternatives
from specwire.generator.passes.grammar import (
    EXTERNALS,
    Grammar,
    Key,
    dialog_parts,
    is_made_of_names,
    key_of,
    names_itself,
    references,
)
from specwire.generator.passes.recursion import check_recursion
from specwire.generator.passes.unused import check_unused

__all__ = ["Grammar", "resolve_names"]

MAX_GUESSES = 50_000
"""Maximum number of comparisons of undefined names with known ones; each takes about ten microseconds."""

_EXTERNAL_WORDS = {"frame": "one ZeroMQ frame", "messages": "all the following frames", "json": "JSON text"}


def resolve_names(
    rulelists: Sequence[Rulelist],
    *,
    diagnostics: Diagnostics,
    dialect: Dialect = "zeromq",
    primitives: Collection[str] = (),
    roots: Collection[str] | None = None,
) -> Grammar:
    """Return the grammar of the rules of all `rulelists`.

    Args:
        primitives: names for which the profile declares a type, so that they need no rule.
        roots: rules that are used although no rule refers to them (messages, dialogs, flag values),
            spelled as in the grammar. Other unused rules are reported (W203). None disables this
            check.
    """
    rules = [rule for rulelist in rulelists for rule in rulelist.rules]
    grammar = Grammar(
        tuple(_merge(rules, dialect, diagnostics)),
        tuple(comment for rulelist in rulelists for comment in rulelist.loose_comments),
    )
    known = {_spelling(name) for name in primitives}
    uses = [reference for rule in grammar.rules for reference in references(rule.definition)]
    _check_spelling(grammar, uses, dialect, diagnostics)
    _check_undefined(grammar, uses, dialect, known, diagnostics)
    check_recursion(grammar, diagnostics)
    check_alternatives(grammar, diagnostics)
    if roots is not None:
        check_unused(grammar, roots, diagnostics)
    return grammar


def _merge(rules: Sequence[Rule], dialect: Dialect, diagnostics: Diagnostics) -> Iterator[Rule]:
    """Yield one rule for each name, where the name is first defined."""
    places: dict[Key, list[Rule]] = {}
    for rule in rules:
        places.setdefault(key_of(rule), []).append(rule)
    for same in places.values():
        yield _merge_places(same, dialect, diagnostics)


def _merge_places(same: list[Rule], dialect: Dialect, diagnostics: Diagnostics) -> Rule:
    if same[0].incremental:
        message = f"'=/' extends rule '{same[0]}', which is not defined before"
        diagnostics.error("E204", same[0].name_span, message, "write '=' in the first definition of the rule")
    whole = [rule for rule in same if not rule.incremental] or same[:1]
    real = [rule for rule in whole if not names_itself(rule)] if dialect == "zeromq" else whole
    base = (real or whole)[0]
    for rule in whole:
        if rule is not base:
            _report_again(base, rule, dialect, diagnostics)
    added = [rule for rule in same if rule.incremental and rule is not base]
    alternatives = tuple(item for rule in (base, *added) for item in _alternatives(rule.definition))
    return replace(
        base,
        definition=Alternation(alternatives, base.definition.span) if added else base.definition,
        incremental=False,
        leading=tuple(comment for rule in same for comment in rule.leading),
        trailing=tuple(comment for rule in same for comment in rule.trailing),
    )


def _report_again(base: Rule, again: Rule, dialect: Dialect, diagnostics: Diagnostics) -> None:
    span, place = again.name_span, _place(base, again.span)
    if _canonical(again.definition) != _canonical(base.definition):
        if names_itself(again) and dialect == "zeromq":
            message = f"rule '{again}' names only itself"
            diagnostics.warning("W207", span, message, f"it is read as the rule defined {place}")
            return
        message = f"rule '{again}' is defined twice with different definitions"
        help = f"it is also defined {place}; keep one, or add alternatives with '=/' (RFC 5234 section 3.3)"
        diagnostics.error("E202", span, message, help)
    elif dialect == "rfc5234":
        message = f"rule '{again}' is defined twice"
        diagnostics.error("E203", span, message, f"it is also defined {place}; remove one of the definitions")
    else:
        message = f"rule '{again}' is defined twice with equal definitions"
        diagnostics.warning("W201", span, message, f"it is also defined {place}; both are read as one rule")


def _check_spelling(
    grammar: Grammar, uses: Sequence[Reference], dialect: Dialect, diagnostics: Diagnostics
) -> None:
    """Report references that are spelled differently from their rules, once for each spelling."""
    if dialect == "rfc5234":
        return
    for reference in {use.name: use for use in reversed(uses)}.values():
        rule = grammar.find(reference)
        if rule is None:
            _check_core_spelling(grammar, reference, diagnostics)
        elif rule.name != reference.name:
            same_case = rule.name.lower() == reference.name.lower()
            code, help = (
                ("W204", "the names differ only in case")
                if same_case
                else ("W202", "'_' in a name is read as '-'")
            )
            message = f"'{reference.name}' is read as rule '{rule.name}'"
            diagnostics.warning(
                code, reference.span, message, f"{help}; the rule is defined {_place(rule, reference.span)}"
            )


def _check_core_spelling(grammar: Grammar, reference: Reference, diagnostics: Diagnostics) -> None:
    name = reference.name.upper()
    if grammar.core(reference) and reference.name != name:
        message = f"'{reference.name}' is read as core rule {name}"
        diagnostics.warning("W205", reference.span, message, f"write {name}, as RFC 5234 appendix B.1 does")


def _check_undefined(
    grammar: Grammar,
    uses: Sequence[Reference],
    dialect: Dialect,
    primitives: set[str],
    diagnostics: Diagnostics,
) -> None:
    """Report references without a definition, once for each name.

    References in dialog rules are skipped: `specwire.generator.passes.dialog_rules` reports them,
    and only the dialog is lost.
    """
    undefined = [use for use in uses if not grammar.find(use) and not grammar.core(use)]
    in_dialogs = _uses_in_dialogs(grammar) if undefined and dialect == "zeromq" else frozenset()
    missing = [use for use in undefined if grammar.external(use) or use.span not in in_dialogs]
    known = _known_names(grammar)
    guesses = 0
    for reference in {key_of(use): use for use in reversed(missing)}.values():
        if {_spelling(str(reference)), _spelling(reference.name)} & primitives:
            continue
        external = grammar.external(reference) if dialect == "zeromq" else None
        if external:
            message = f"'{reference}' is not defined"
            diagnostics.warning("W206", reference.span, message, f"it is read as {_EXTERNAL_WORDS[external]}")
        else:
            message = f"rule '{reference}' is not defined"
            guesses += len(known)
            names = known if guesses <= MAX_GUESSES else {}
            diagnostics.error("E201", reference.span, message, _advice(names, reference))


def _uses_in_dialogs(grammar: Grammar) -> frozenset[Span]:
    """Return the places of references in the rules of dialogs that consist of references only."""
    parts = [rule for rule in dialog_parts(grammar).values() if is_made_of_names(rule.definition)]
    return frozenset(use.span for rule in parts for use in references(rule.definition))


def _known_names(grammar: Grammar) -> dict[str, str]:
    """Return the candidates for a misspelt name: the spelling in the grammar, by the name in lower case."""
    names = {name: name for name in EXTERNALS}
    names |= {name.lower(): name for name in core_rules()}
    return names | {str(rule).lower(): str(rule) for rule in grammar.rules}


def _advice(names: Mapping[str, str], reference: Reference) -> str:
    written = str(reference).lower()
    close = [name for name in get_close_matches(written, names, n=2, cutoff=0.7) if name != written][:1]
    profile = (PurePath(reference.span.source.path).parent / "profile.toml").as_posix()
    guess = f"did you mean '{names[close[0]]}'? " if close else ""
    return f"{guess}{'Otherwise define' if close else 'define'} it, or declare its type in {profile}"


def _alternatives(element: Element) -> tuple[Element, ...]:
    return element.items if isinstance(element, Alternation) else (element,)


def _canonical(element: Element) -> object:
    """Return a value that is equal for two definitions that differ only in the spelling of names."""
    match element:
        case Reference():
            return key_of(element)
        case Alternation() | Concatenation():
            return type(element), tuple(map(_canonical, element.items))
        case Repetition():
            return element.minimum, element.maximum, _canonical(element.element)
        case Option():
            return Option, _canonical(element.element)
        case _:
            return element


def _spelling(name: str) -> str:
    return name.lower().replace("_", "-")


def _place(rule: Rule, seen_from: Span) -> str:
    """Return the place of a rule in words: the line, and the file if it is another one."""
    span = rule.name_span
    return f"in line {span.line}" if span.source.path == seen_from.source.path else f"at {span}"
