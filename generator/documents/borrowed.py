"""Names that a document uses but another specification defines.

A protocol can extend another one: ``base`` in its profile. Documents do not name the base in a form
that can be parsed. But if a protocol in the same folder of grammars defines exactly the missing
names, it is proposed as the base.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from specwire.generator.abnf.lines import read_grammar
from specwire.generator.abnf.parser import parse_grammar
from specwire.generator.abnf.sources import GRAMMAR
from specwire.generator.abnf.syntax import Reference, Rule, Rulelist
from specwire.generator.diagnostics import Diagnostics, Source
from specwire.generator.documents.misspellings import speller_of
from specwire.generator.ir.names import fold
from specwire.generator.passes.grammar import references

MOST_PROTOCOLS = 200
"""Maximum number of folders that are searched."""


def undefined_names(rulelist: Rulelist, published: Iterable[Rule]) -> list[Reference]:
    """Return the uses of names that `published` rules leave undefined after corrections.

    Rules from frame tables and dialogs are not checked here: they were checked when they were converted.
    """
    speller = speller_of(rulelist)
    return [
        use
        for rule in published
        for use in references(speller.correct(rule.definition))
        if fold(use.name) not in speller.names
    ]


def report_borrowed(missing: Sequence[Reference], folder: Path | None, diagnostics: Diagnostics) -> None:
    """Report the undefined names, at the place of the first.

    Args:
        folder: the folder of the protocol.
    """
    if not missing:
        return
    names = list(dict.fromkeys(fold(use.name) for use in missing))
    others = len(names) - 1
    more = f" and {others} more name{'s' if others > 1 else ''} are" if others else " is"
    message = f"'{missing[0].name}'{more} not defined in the document"
    help = (
        "define them under [[rules]] in the profile, or import the specification that defines them and "
        "name it as `base`"
    )
    for protocol, defined in _beside(folder):
        if set(names) <= defined:
            help = (
                f"protocol '{protocol}' defines them: write base = \"{protocol}\" in the profile to "
                "use its rules"
            )
            break
    diagnostics.warning("W717", missing[0].span, message, help)


def _beside(folder: Path | None) -> Iterator[tuple[str, set[str]]]:
    if folder is None or not folder.parent.is_dir():
        return
    for path in sorted(folder.parent.glob(f"*/{GRAMMAR}"))[:MOST_PROTOCOLS]:
        if path.parent.name != folder.name:
            with path.open("rb") as stream:
                text = read_grammar(stream)
            rules = parse_grammar(Source("", text), dialect="zeromq", diagnostics=Diagnostics()).rules
            yield path.parent.name, {fold(rule.name) for rule in rules}
