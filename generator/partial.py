"""Compilation of the sound messages of a protocol, for ``--partial``.

Each message is compiled alone first. One that has a fault is omitted; so are messages that have one
together, because they cannot be distinguished or have the same name. A message also has the faults
of the rules that it uses: a name without a definition, a rule that could not be read. Each omitted
message is reported with its first fault (W423).

Other faults, of the profile or of a declared dialog, stay errors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import msgspec

from specwire.generator import ir
from specwire.generator.abnf.sources import unread_names
from specwire.generator.abnf.syntax import Rule
from specwire.generator.diagnostics import Diagnostic, Diagnostics, SpecError
from specwire.generator.ir.names import fold
from specwire.generator.passes.grammar import Grammar, references
from specwire.generator.passes.roots import find_messages
from specwire.generator.profile.tables import LoadedProfile

Build = Callable[[LoadedProfile, Diagnostics], ir.Protocol]
"""Compiles the messages that a profile lists; raises `SpecError`."""
_OF_GRAMMAR = ("E1", "E2")
"""Codes of faults in the text and the names of a grammar."""
_HELP = "correct the rule in an erratum, or define what it needs under [[rules]] in the profile"


def build_sound(
    grammar: Grammar, loaded: LoadedProfile, diagnostics: Diagnostics, build: Build
) -> tuple[ir.Protocol, Diagnostics, list[str]]:
    """Return the protocol of the sound messages, the warnings about it, and the omitted messages.

    Args:
        diagnostics: the findings so far.

    Raises:
        SpecError: there is a fault that belongs to no message, or no message is sound.
    """
    faults = [fault for fault in diagnostics.errors if fault.code.startswith(_OF_GRAMMAR)]
    if len(faults) < len(diagnostics.errors):
        diagnostics.raise_errors()
    rules = find_messages(grammar, loaded, diagnostics)
    omitted = {str(rule): fault for rule in rules if (fault := _fault(grammar, rule, faults, loaded, build))}
    while True:
        sound = [rule for rule in rules if str(rule) not in omitted]
        found = Diagnostics()
        try:
            if not sound:
                raise SpecError(tuple(dict.fromkeys((*diagnostics, *omitted.values()))))
            protocol = build(_only(loaded, sound), found)
            break
        except SpecError as error:
            shared = _shared(sound, error.diagnostics)
            if not shared:
                raise
            omitted |= shared
    for name, fault in omitted.items():
        message = f"nothing is generated from message '{name}': {fault.message}"
        found.warning("W423", fault.span, message, fault.help or _HELP)
    for fault in faults:
        if fault not in omitted.values():
            found.warning("W423", fault.span, f"a rule is not used: {fault.message}", fault.help or _HELP)
    found.extend(finding for finding in diagnostics if finding not in diagnostics.errors)
    return protocol, found, list(omitted)


def _fault(
    grammar: Grammar, rule: Rule, faults: Sequence[Diagnostic], loaded: LoadedProfile, build: Build
) -> Diagnostic | None:
    """Return the first fault of a message or of a rule that it uses."""
    unread = {fold(name) for name in unread_names(faults)} - {fold(known.name) for known in grammar.rules}
    for used in _used(grammar, rule):
        names = {fold(use.name) for use in references(used.definition)}
        for fault in faults:
            if _is_inside(fault, used) or (names & unread and fault.code.startswith("E1")):
                return fault
    try:
        build(_only(loaded, [rule]), Diagnostics())
    except SpecError as error:
        return next(found for found in error.diagnostics if found.code.startswith("E"))
    return None


def _used(grammar: Grammar, rule: Rule) -> Iterable[Rule]:
    """Return a rule and all rules that it uses."""
    found = {str(rule): rule}
    for known in (waiting := [rule]):  # grows during the walk
        for use in references(known.definition):
            target = grammar.find(use)
            if target and str(target) not in found:
                found[str(target)] = target
                waiting.append(target)
    return found.values()


def _is_inside(fault: Diagnostic, rule: Rule) -> bool:
    span, place = rule.span, (fault.span.line, fault.span.column)
    same = fault.span.source.path == span.source.path
    return same and (span.line, span.column) <= place <= (span.end_line, span.end_column)


def _shared(sound: Sequence[Rule], found: Iterable[Diagnostic]) -> dict[str, Diagnostic]:
    """Return the messages that the first fault names, each with it."""
    fault = next(finding for finding in found if finding.code.startswith("E"))
    return {str(rule): fault for rule in sound if f"'{rule}'" in fault.message}


def _only(loaded: LoadedProfile, rules: Sequence[Rule]) -> LoadedProfile:
    """Return the profile with these messages only; entries of other messages are removed."""
    kept = {fold(str(rule)) for rule in rules}
    profile = msgspec.structs.replace(
        loaded.profile,
        messages=tuple(map(str, rules)),
        message={name: table for name, table in loaded.profile.message.items() if fold(name) in kept},
    )
    return replace(loaded, profile=profile)
