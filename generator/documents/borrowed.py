"""Names that a document uses and another specification defines, as security mechanisms do with the transport's.

A protocol can stand on another, ``base`` in its profile. Which one that is no document says in a form that could be
read; but where exactly the missing names are defined by a protocol in the same folder of grammars, it is proposed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from specwire.generator.abnf import parse_grammar
from specwire.generator.abnf_bounds import read_grammar
from specwire.generator.diagnostics import Diagnostics, Source
from specwire.generator.documents.misspellings import speller_of
from specwire.generator.names import fold
from specwire.generator.passes.grammar import references
from specwire.generator.sources import GRAMMAR
from specwire.generator.syntax import Rule, Rulelist

MOST_PROTOCOLS = 200
"""Folders that are looked into."""


def report_borrowed(
    rulelist: Rulelist, published: Iterable[Rule], folder: Path | None, diagnostics: Diagnostics
) -> None:
    """Report the names that `published` rules leave open when slips are mended, at the place of the first.

    `folder` is the protocol's. Rules that were made of drawings have been looked at where they were made.
    """
    speller = speller_of(rulelist)
    missing = [
        use
        for rule in published
        for use in references(speller.mend(rule.definition))
        if fold(use.name) not in speller.names
    ]
    if not missing:
        return
    names = list(dict.fromkeys(fold(use.name) for use in missing))
    others = len(names) - 1
    more = f" and {others} more name{'s' if others > 1 else ''} are" if others else " is"
    message = f"'{missing[0].name}'{more} defined nowhere in the document"
    help = "write them under [[rules]] in the profile, or import the specification that has them and name it as `base`"
    for protocol, defined in _beside(folder):
        if set(names) <= defined:
            help = f"protocol '{protocol}' defines them: base = \"{protocol}\" in the profile takes its rules"
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
