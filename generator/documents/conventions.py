"""Proposed rules for names that a document uses but does not define.

Two things can show what such a name stands for:

- **The other messages of the same form.** If ``header = open / close / alive`` and the alternatives are
  sequences that begin alike and have as many elements, they are forms of one header. If all the
  others have 4 octets in a place, so has the name in that place.
- **A known family.** zproto writes the same rules for its types into every grammar, but some of its
  versions omitted one. The family is recognised by the rules ``number-1`` and ``string``.

The profile receives the rules under ``[[rules]]`` with the reason. Each is an assumption and is
reported (W720).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from specwire.generator.abnf.syntax import Alternation, Concatenation, Element, Reference, Rulelist
from specwire.generator.diagnostics import Diagnostics
from specwire.generator.ir.names import fold
from specwire.generator.passes.grammar import Grammar
from specwire.generator.passes.octets import Octets
from specwire.generator.passes.resolve import resolve_names
from specwire.generator.profile.tables import AddedRules

_HELP = "profile.toml defines it under [[rules]]; change the rule there if it is wrong"
_LEAST_OTHERS = 2
"""Minimum number of other messages of the same form."""

_ZPROTO: Mapping[str, tuple[str, ...]] = {
    "longstr": ("{name} = number-4 *VCHAR",),
    "chunk": ("{name} = number-4 *OCTET",),
    "uuid": ("{name} = 16OCTET",),
    "hash": (
        "{name} = {name}-count *( {name}-name {name}-value )",
        "{name}-count = number-4",
        "{name}-name = string",
        "{name}-value = longstr",
    ),
}
"""Rules of zproto's types, by name. ``dictionary`` and ``hash`` are two names of one type."""


def propose_rules(
    rulelist: Rulelist, missing: Sequence[Reference], diagnostics: Diagnostics
) -> tuple[AddedRules, ...]:
    """Return rules for the `missing` names that the document or its family determines; report each."""
    if not missing:
        return ()
    grammar = resolve_names([rulelist], diagnostics=Diagnostics())
    firsts = {fold(use.name): use for use in reversed(missing)}
    proposed: list[AddedRules] = []
    for use in reversed(firsts.values()):
        added = _by_other_messages(grammar, use) or _by_family(grammar, use)
        if added:
            proposed.append(added)
            message = f"'{use.name}' is not defined in the document and is assumed to be "
            message += f"'{added.text.splitlines()[0]}'"
            diagnostics.warning("W720", use.span, message, _HELP)
    return tuple(proposed)


def _by_other_messages(grammar: Grammar, missing: Reference) -> AddedRules | None:
    """Return a rule with the size that all other messages of the same form have in this place."""
    octets = Octets(grammar)
    sizes: set[int] = set()
    for form, others in _forms(grammar):
        for place, item in enumerate(form.items):
            if not isinstance(item, Reference) or fold(item.name) != fold(missing.name):
                continue
            found = [octets.extent(other.items[place]) for other in others]
            if len(found) < _LEAST_OTHERS or len(set(found)) > 1 or not found[0]:
                return None
            sizes.add(found[0])
    if len(sizes) != 1:
        return None
    size = sizes.pop()
    why = f"The document does not define {missing.name}. The other messages of the same form have "
    why += f"{size} octets in its place."
    return AddedRules(why, f"{missing.name} = {size}OCTET")


def _forms(grammar: Grammar) -> Iterator[tuple[Concatenation, list[Concatenation]]]:
    """Yield each alternative of a rule, with the others that begin alike and have as many elements."""
    for rule in grammar.rules:
        if not isinstance(rule.definition, Alternation):
            continue
        forms = [form for item in rule.definition.items if (form := _sequence(grammar, item))]
        for form in forms:
            yield form, [other for other in forms if other is not form and _is_alike(form, other)]


def _sequence(grammar: Grammar, element: Element) -> Concatenation | None:
    rule = grammar.find(element) if isinstance(element, Reference) else None
    return rule.definition if rule and isinstance(rule.definition, Concatenation) else None


def _is_alike(one: Concatenation, other: Concatenation) -> bool:
    first, second = one.items[0], other.items[0]
    same = isinstance(first, Reference) and isinstance(second, Reference)
    return len(one.items) == len(other.items) and same and fold(str(first)) == fold(str(second))


def _by_family(grammar: Grammar, missing: Reference) -> AddedRules | None:
    """Return the rule of one of zproto's types, if the grammar has the rules that it needs."""
    name = missing.name.lower()
    rules = _ZPROTO.get("hash" if name == "dictionary" else name, ())
    octets = Octets(grammar)
    sizes = {size: octets.count(Reference(f"number-{size}", None, missing.span)) for size in (1, 4)}
    if not rules or any(size != found for size, found in sizes.items()) or not _has_new_lists(grammar, name):
        return None
    why = f"The document does not define {missing.name}. It is a type of zproto, whose rules are these."
    return AddedRules(why, "\n".join(rules).format(name=missing.name))


def _has_new_lists(grammar: Grammar, name: str) -> bool:
    """Whether a list counts its items in 4 octets: early versions of zproto had another dictionary."""
    return name not in ("hash", "dictionary") or all(
        grammar.rule(needed) for needed in ("strings-count", "string", "longstr")
    )
