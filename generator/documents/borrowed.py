"""Names that a document uses but another specification defines.

A protocol can extend another one: ``base`` in its profile. If a protocol in the same folder of
grammars defines exactly the missing names, and the document names that protocol (its title, its
edition or its document), the profile receives it as the base. If the document does not name it, it
is only proposed.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from specwire.generator.abnf.lines import read_grammar
from specwire.generator.abnf.parser import parse_grammar
from specwire.generator.abnf.sources import GRAMMAR
from specwire.generator.abnf.syntax import Reference, Rule, Rulelist
from specwire.generator.diagnostics import Diagnostics, Source
from specwire.generator.documents.misspellings import speller_of
from specwire.generator.ir.names import fold
from specwire.generator.passes.grammar import references
from specwire.generator.profile.reader import PROFILE

SHORTEST_NAME = 6
"""Minimum number of characters of a title or an edition by which a document names a protocol."""
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
        for use in references(speller.correct(rule))
        if fold(use.name) not in speller.names
    ]


@dataclass(frozen=True, slots=True)
class Base:
    """A protocol in the folder of grammars that defines all missing names."""

    protocol: str
    names: frozenset[str]
    """The names that it defines, in the form in which they are compared."""
    named: bool
    """Whether the document names it."""


def find_base(missing: Sequence[Reference], text: str, folder: Path | None) -> Base | None:
    """Return the protocol that defines the `missing` names, preferably one that the document `text` names.

    Args:
        folder: the folder of the protocol that is imported.
    """
    names = {fold(use.name) for use in missing}
    found = [
        Base(path.name, defined, _is_named(path, _plain(text)))
        for path, defined in (_beside(folder) if names else ())
        if names <= defined
    ]
    return next((base for base in found if base.named), found[0] if found else None)


def report_borrowed(missing: Sequence[Reference], base: Base | None, diagnostics: Diagnostics) -> None:
    """Report the undefined names, at the place of the first, and the protocol that defines them."""
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
    if base is not None and base.named:
        help = (
            f"protocol '{base.protocol}', which the document names, defines them: the profile has it as "
            "`base`; remove that if it is wrong"
        )
    elif base is not None:
        help = (
            f"protocol '{base.protocol}' defines them: write base = \"{base.protocol}\" in the profile to "
            "use its rules"
        )
    diagnostics.warning("W717", missing[0].span, message, help)


def _is_named(folder: Path, text: str) -> bool:
    """Whether a text without marks has the title, the edition or the document of the protocol in `folder`."""
    try:
        profile = tomllib.loads((folder / PROFILE).read_text(encoding="utf-8"))
        facts = [
            profile.get("title", ""),
            profile.get("edition", ""),
            profile.get("source", {}).get("document"),
        ]
    except (OSError, ValueError, AttributeError):
        return False  # a profile with a fault is reported when it is compiled
    names = [_plain(fact.partition(",")[0]) for fact in facts if isinstance(fact, str)]
    return any(len(name) >= SHORTEST_NAME and name in text for name in names)


def _plain(text: str) -> str:
    """Return a text in lower case, with one space for everything but letters, digits and dots."""
    return re.sub(r"[^a-z0-9.]+", " ", re.sub(r"\bv(?=\d)", "", text.lower())).strip()


def _beside(folder: Path | None) -> Iterator[tuple[Path, frozenset[str]]]:
    """Yield the folders of the other protocols with the names that each defines."""
    if folder is None or not folder.parent.is_dir():
        return
    for path in sorted(folder.parent.glob(f"*/{GRAMMAR}"))[:MOST_PROTOCOLS]:
        if path.parent.name != folder.name:
            with path.open("rb") as stream:
                text = read_grammar(stream)
            rules = parse_grammar(Source("", text), dialect="zeromq", diagnostics=Diagnostics()).rules
            yield path.parent, frozenset(fold(rule.name) for rule in rules)
