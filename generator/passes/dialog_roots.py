"""Search for the dialogs of a grammar whose profile declares none.

A rule that names messages with their senders (``C:OHAI ( S:OHAI-OK / error )``) is part of a
dialog. So is a rule that consists of such rules and has no octets. A part that no other part uses
is a dialog between the roles that it names. Its settings are inferred from the shape of the rule:

- alternatives side by side (``C:request *S:response / S:event``) are exchanges of an endless
  dialog, so it repeats;
- the messages of a rule named ``error`` that the dialog uses are its errors.

These assumptions are reported (W410). So are rules that could be one dialog or several (W411), and
a letter that is not among the profile's roles (W412). A rule that cannot be a dialog is a warning
with the reason (W406), not an error, because nothing declares it to be a dialog. ``dialogs = []``
in the profile declares that there is none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from specwire.generator.abnf.syntax import Alternation, Concatenation, Element, Reference, Rule
from specwire.generator.diagnostics import Diagnostics
from specwire.generator.ir.dialogs import Dialog, DialogSettings
from specwire.generator.ir.names import fold
from specwire.generator.passes.automata import Steps
from specwire.generator.passes.dialog import build_dialogs
from specwire.generator.passes.grammar import Grammar, dialog_parts, references
from specwire.generator.profile.tables import LoadedProfile

_ERRORS = frozenset({"error", "errors"})


def infer_dialogs(
    grammar: Grammar, classes: Mapping[str, str], loaded: LoadedProfile, diagnostics: Diagnostics
) -> tuple[Dialog, ...]:
    """Return the dialogs that the rules define, in the order of the grammar.

    None if the profile declares none.

    Args:
        classes: the class names of the messages, by rule.
    """
    if ("dialogs",) in loaded.places:
        return ()
    parts = dialog_parts(grammar, classes)
    built: list[Dialog] = []
    steps = Steps()
    for root in _roots(grammar, parts):
        settings = _settings(grammar, root, parts, loaded)
        found = Diagnostics()
        dialogs = build_dialogs(grammar, [settings], classes, found, place=loaded.span_of, steps=steps)
        if not dialogs:
            _explain(root, found, diagnostics)
            continue
        diagnostics.extend(found)
        _list_assumption(root, settings, loaded, diagnostics)
        built.extend(dialogs)
    _check_alike(grammar, built, diagnostics)
    return tuple(built)


def _roots(grammar: Grammar, parts: Mapping[str, Rule]) -> list[Rule]:
    """Return the parts that no other part uses; of parts that only use each other, the first."""
    used = {
        str(target) for rule in parts.values() for target in _targets(grammar, rule) if target is not rule
    }
    roots = [rule for name, rule in parts.items() if name not in used]
    reached = {str(rule) for root in roots for rule in _reached(grammar, root, parts)}
    for name, rule in parts.items():
        if name not in reached:
            roots.append(rule)
            reached |= {str(found) for found in _reached(grammar, rule, parts)}
    return roots


def _targets(grammar: Grammar, rule: Rule) -> Iterator[Rule]:
    for use in references(rule.definition):
        target = grammar.find(use)
        if target is not None:
            yield target


def _settings(
    grammar: Grammar, root: Rule, parts: Mapping[str, Rule], loaded: LoadedProfile
) -> DialogSettings:
    reached = _reached(grammar, root, parts)
    letters = dict.fromkeys(
        use.role.upper() for rule in reached for use in references(rule.definition) if use.role is not None
    )
    declared = {letter.upper(): letter for letter in loaded.profile.roles}
    known = [letter for folded, letter in declared.items() if folded in letters]
    errors = [rule for rule in reached if fold(rule.name) in _ERRORS and rule is not root]
    return DialogSettings(
        name=str(root).replace(":", "-"),
        rule=str(root),
        roles=tuple(dict.fromkeys((*known, *(declared.get(letter, letter) for letter in letters)))),
        error=str(errors[0]) if errors and _is_choice_of_messages(errors[0]) else None,
        repeat=_is_choice_of_exchanges(root),
    )


def _reached(grammar: Grammar, root: Rule, parts: Mapping[str, Rule]) -> list[Rule]:
    """Return `root` and the parts that it uses, in the order in which they are named."""
    found = {str(root): root}
    for rule in (waiting := [root]):  # grows while we walk it
        for target in _targets(grammar, rule):
            if str(target) in parts and str(target) not in found:
                found[str(target)] = target
                waiting.append(target)
    return list(found.values())


def _is_choice_of_messages(rule: Rule) -> bool:
    items = rule.definition.items if isinstance(rule.definition, Alternation) else (rule.definition,)
    return all(isinstance(item, Reference) and item.role for item in items)


def _is_choice_of_exchanges(rule: Rule) -> bool:
    """Whether all alternatives of a rule begin with one message, so that any may follow any."""
    if not isinstance(rule.definition, Alternation):
        return False
    return all(isinstance(_first(item), Reference) for item in rule.definition.items)


def _first(element: Element) -> Element:
    return element.items[0] if isinstance(element, Concatenation) and element.items else element


def _explain(root: Rule, found: Diagnostics, diagnostics: Diagnostics) -> None:
    """Report why no state machine is generated from a rule."""
    for fault in found.errors:
        diagnostics.warning(
            "W406", fault.span, f"nothing is generated from dialog '{root}': {fault.message}", fault.help
        )


def _list_assumption(
    root: Rule, settings: DialogSettings, loaded: LoadedProfile, diagnostics: Diagnostics
) -> None:
    facts = [f"rule '{root}' is read as the dialog of {_listed(settings.roles)}"]
    facts += ["it repeats"] if settings.repeat else []
    facts += [f"the messages of '{settings.error}' end it"] if settings.error else []
    letters = ", ".join(f'"{role}"' for role in settings.roles)
    written = [f'name = "{settings.name}"', f'rule = "{settings.rule}"', f"roles = [{letters}]"]
    written += ["repeat = true"] if settings.repeat else []
    written += [f'error = "{settings.error}"'] if settings.error else []
    diagnostics.warning(
        "W410",
        root.name_span,
        "; ".join(facts),
        f"write it under [[dialogs]] in {loaded.source.path}: {', '.join(written)}",
    )
    declared = loaded.profile.roles
    for role in settings.roles if declared else ():
        if role not in declared:
            diagnostics.warning(
                "W412",
                root.name_span,
                f"'{role}' sends messages in dialog '{root}', but the profile has no such role",
                f"add [roles.{role}] in {loaded.source.path}; the declared roles are {_listed(declared)}",
            )


def _check_alike(grammar: Grammar, dialogs: Sequence[Dialog], diagnostics: Diagnostics) -> None:
    """Report dialogs between the same roles: they may be separate, or parts of one dialog."""
    by_roles: dict[frozenset[str], list[Dialog]] = {}
    for dialog in dialogs:
        by_roles.setdefault(frozenset(dialog.roles), []).append(dialog)
    for alike in by_roles.values():
        if len(alike) < 2:
            continue
        names = [f"'{dialog.rule}'" for dialog in alike]
        rule = next(rule for rule in grammar.rules if str(rule) == alike[-1].rule)
        diagnostics.warning(
            "W411",
            rule.name_span,
            f"each of the rules {_listed(names)} is read as a separate dialog",
            "if they are one dialog, join them in one rule under [[rules]] and declare it under [[dialogs]]",
        )


def _listed(names: Iterable[str]) -> str:
    listed = list(names)
    return f"{', '.join(listed[:-1])} and {listed[-1]}" if len(listed) > 1 else listed[0]
