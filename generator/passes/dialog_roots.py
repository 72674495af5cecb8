"""Find the dialogs of a grammar whose profile declares none.

A rule that names messages with their senders (``C:OHAI ( S:OHAI-OK / error )``) is part of a dialog, and so is a
rule that is made of such rules and no octets. One of them that no other one uses is the whole: a dialog between
the roles that it names. What the rule cannot say is read from its shape:

- alternatives side by side (``C:request *S:response / S:event``) are exchanges of a dialog without end, so it repeats;
- the messages of a rule named ``error`` that the dialog uses are its errors.

All of this is assumed, so it is listed (W410), as is what stays open: rules that could be one dialog or several
(W411), a letter that the profile's roles lack (W412). A rule that cannot be a dialog is no error here, because
nobody has said that it is one: the reason is told (W406), and no machine is made of it. ``dialogs = []`` in the
profile says that there is none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from specwire.generator.diagnostics import Diagnostics
from specwire.generator.dialogs import Dialog, DialogSettings
from specwire.generator.names import fold
from specwire.generator.passes.automata import Steps
from specwire.generator.passes.dialog import build_dialogs
from specwire.generator.passes.grammar import Grammar, dialog_parts, references
from specwire.generator.profile import LoadedProfile
from specwire.generator.syntax import Alternation, Concatenation, Element, Reference, Rule

_ERRORS = frozenset({"error", "errors"})


def infer_dialogs(
    grammar: Grammar, classes: Mapping[str, str], loaded: LoadedProfile, diagnostics: Diagnostics
) -> tuple[Dialog, ...]:
    """Return the dialogs that the rules draw, in the order of the grammar; none where the profile says so.

    `classes` are the class names of the messages by their rules.
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
    """Return `root` and the parts that it is made of, in the order in which they are named."""
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
    """Whether a rule is alternatives that each begin with one message: so any may follow any."""
    if not isinstance(rule.definition, Alternation):
        return False
    return all(isinstance(_first(item), Reference) for item in rule.definition.items)


def _first(element: Element) -> Element:
    return element.items[0] if isinstance(element, Concatenation) and element.items else element


def _explain(root: Rule, found: Diagnostics, diagnostics: Diagnostics) -> None:
    """Tell why no machine is made of a rule."""
    for fault in found.errors:
        diagnostics.warning(
            "W406", fault.span, f"nothing is generated of the dialog '{root}': {fault.message}", fault.help
        )


def _list_assumption(
    root: Rule, settings: DialogSettings, loaded: LoadedProfile, diagnostics: Diagnostics
) -> None:
    facts = [f"rule '{root}' is taken for the dialog of {_listed(settings.roles)}"]
    facts += ["it repeats"] if settings.repeat else []
    facts += [f"the messages of '{settings.error}' end it"] if settings.error else []
    letters = ", ".join(f'"{role}"' for role in settings.roles)
    written = [f'name = "{settings.name}"', f'rule = "{settings.rule}"', f"roles = [{letters}]"]
    written += ["repeat = true"] if settings.repeat else []
    written += [f'error = "{settings.error}"'] if settings.error else []
    diagnostics.warning(
        "W410", root.name_span, "; ".join(facts),
        f"write it under [[dialogs]] in {loaded.source.path}: {', '.join(written)}",
    )  # fmt: skip
    declared = loaded.profile.roles
    for role in settings.roles if declared else ():
        if role not in declared:
            diagnostics.warning(
                "W412", root.name_span, f"'{role}' sends messages in dialog '{root}', and the profile has no such role",
                f"describe it under [roles.{role}] in {loaded.source.path}, beside {_listed(declared)}",
            )  # fmt: skip


def _check_alike(grammar: Grammar, dialogs: Sequence[Dialog], diagnostics: Diagnostics) -> None:
    """Report dialogs between the same roles: they may be side by side, or follow each other."""
    by_roles: dict[frozenset[str], list[Dialog]] = {}
    for dialog in dialogs:
        by_roles.setdefault(frozenset(dialog.roles), []).append(dialog)
    for alike in by_roles.values():
        if len(alike) < 2:
            continue
        names = [f"'{dialog.rule}'" for dialog in alike]
        rule = next(rule for rule in grammar.rules if str(rule) == alike[-1].rule)
        diagnostics.warning(
            "W411", rule.name_span, f"each of the rules {_listed(names)} is taken for a dialog of its own",
            "if they belong together, write one rule of them in [[rules]], and declare it under [[dialogs]]",
        )  # fmt: skip


def _listed(names: Iterable[str]) -> str:
    listed = list(names)
    return f"{', '.join(listed[:-1])} and {listed[-1]}" if len(listed) > 1 else listed[0]
