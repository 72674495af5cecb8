"""Unused rules (W203).

A rule is used if another rule refers to it, or if it is the first rule, a message, a dialog, the name of a
constant (such as a flag or an error number), or mentioned in the profile.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from specwire.generator import ir
from specwire.generator.abnf.syntax import CharVal, NumVal
from specwire.generator.diagnostics import Diagnostics
from specwire.generator.ir.names import fold
from specwire.generator.passes.grammar import Grammar, key_of, references
from specwire.generator.profile.tables import Profile


def check_unused(grammar: Grammar, roots: Collection[str], diagnostics: Diagnostics) -> None:
    """Report each rule that no other rule uses and that is not one of `roots`, spelled as in the grammar."""
    known = {fold(name) for name in roots}
    used = {
        key_of(rule)
        for user in grammar.rules
        for reference in references(user.definition)
        if (rule := grammar.find(reference)) and rule is not user
    }
    for rule in grammar.rules:
        if key_of(rule) not in used and not {fold(str(rule)), fold(rule.name)} & known:
            diagnostics.warning(
                "W203",
                rule.name_span,
                f"rule '{rule}' is never used",
                "if it is a message or a constant, name it in the profile; otherwise remove it",
            )


def standing_rules(grammar: Grammar, protocol: ir.Protocol, profile: Profile) -> Iterator[str]:
    """Yield the names of the rules that are used although no rule refers to them."""
    yield from (str(rule) for rule in grammar.rules[:1])
    yield from (str(rule) for rule in grammar.rules if any(r.role for r in references(rule.definition)))
    yield from (message.rule for message in protocol.messages)
    yield from (str(rule) for rule in grammar.rules if isinstance(rule.definition, NumVal | CharVal))
    yield from (key.rpartition(".")[2] for key in profile.types)
    for dialog in profile.dialogs:
        yield from (name for name in (dialog.rule, dialog.error) if name)
