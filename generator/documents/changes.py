"""Changes between two editions of a grammar, rule by rule: added, removed, changed.

Comments, layout and the order of rules are not compared. `specwire.generator.abnf.syntax` writes both
sides, so that two spellings of one definition are equal.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from specwire.generator.abnf.syntax import Rule, Rulelist, write_element
from specwire.generator.passes.grammar import key_of


@dataclass(frozen=True, slots=True)
class RuleChange:
    """A rule with its definitions before and after; None if it did not exist, or no longer exists."""

    rule: str
    was: str | None
    now: str | None

    @property
    def lines(self) -> Iterator[str]:
        """Yield the change as lines of a diff."""
        if self.was is not None:
            yield f"-{self.rule} = {self.was}"
        if self.now is not None:
            yield f"+{self.rule} = {self.now}"


def rule_changes(old: Rulelist, new: Rulelist) -> tuple[RuleChange, ...]:
    """Return the differences: those of the old rules in their order, then the added ones."""
    before, after = _by_key(old.rules), _by_key(new.rules)
    changes = [
        RuleChange(name, was, after[key][1] if key in after else None)
        for key, (name, was) in before.items()
        if key not in after or after[key][1] != was
    ]
    added = [RuleChange(name, None, now) for key, (name, now) in after.items() if key not in before]
    return (*changes, *added)


def _by_key(rules: Iterable[Rule]) -> dict[object, tuple[str, str]]:
    """Return names and definitions by the key by which names are compared; repetitions are skipped."""
    found: dict[object, tuple[str, str]] = {}
    for rule in rules:
        text = write_element(rule.definition)
        name, known = found.get(key_of(rule), (str(rule), ""))
        alternatives = known.split(" <or> ") if known else []
        if text not in alternatives:
            found[key_of(rule)] = (name, " <or> ".join([*alternatives, text]))
    return found
