"""Uses of rules in a grammar: bits of a bitmask, lengths and counts.

- ``flags`` with constants ``flag-topic``, ``flag-payload``, … is a bitmask, and the constants are its bits;
- a rule that is always directly before a repetition is a length or a count.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from specwire.generator.abnf.syntax import (
    Alternation,
    Concatenation,
    Element,
    Option,
    Reference,
    Repetition,
    Rule,
)
from specwire.generator.passes.grammar import Grammar
from specwire.generator.passes.octets import Octets


def find_bits(grammar: Grammar, octets: Octets) -> dict[str, list[Rule]]:
    """Return the rules that name the bits of each bitmask rule, in the order of the grammar, by its name."""
    masks = {
        rule.name.lower().removesuffix("s"): rule
        for rule in grammar.rules
        if rule.name.lower().endswith("s") and octets.count(rule.definition) is not None
    }
    lengths = sorted({len(name) for name in masks}, reverse=True)
    found: dict[str, list[Rule]] = {}
    for rule in grammar.rules:
        name = rule.name.lower()
        prefixes = (name[:length] for length in lengths if name[length : length + 1] == "-")
        mask = next((masks[prefix] for prefix in prefixes if prefix in masks), None)
        if mask is not None and octets.constant(rule.definition) is not None:
            found.setdefault(str(mask), []).append(rule)
    return found


def find_counts(grammar: Grammar) -> frozenset[str]:
    """Return the names of the rules that are always directly before a repetition: lengths and counts."""
    counting: set[str] = set()
    other: set[str] = set()
    for items in _runs(rule.definition for rule in grammar.rules):
        for item, after in zip(items, (*items[1:], None), strict=True):
            rule = grammar.find(item) if isinstance(item, Reference) else None
            if rule is not None:
                (counting if isinstance(after, Repetition) else other).add(str(rule))
    return frozenset(counting - other)


def _runs(elements: Iterable[Element]) -> Iterator[tuple[Element, ...]]:
    """Yield every run of elements in definitions; a single reference is a run of one."""
    for element in elements:
        match element:
            case Concatenation(items=items):
                yield items
                yield from _runs(item for item in items if not isinstance(item, Reference))
            case Alternation(items=items):
                yield from _runs(items)
            case Repetition(element=inner) | Option(element=inner):
                yield from _runs((inner,))
            case Reference():
                yield (element,)
            case _:
                pass
