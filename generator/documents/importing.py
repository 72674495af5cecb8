"""The way from a document to a protocol's folder, top to bottom; nothing here writes a file.

A document that has a grammar gives its blocks, joined. One that has frame tables gives the rules made of
them. Drawn dialogs become rules where the document has no dialog in its grammar. A folder that is
there already keeps its profile: only ``[source]`` changes, and errata that mend nothing any more are reported.

    E700  a protocol's name that cannot name a package
    E701  not a text
    E702  a text without grammar, frame table or dialog
    E703  more than a grammar can be
    E704  a frame table that cannot be read           W704  a frame of which the table says too little
    E705  a dialog that cannot be read                W705  a constant of another size than is said
    W701  a block that is never closed                W706  frames out of order
    W702  another number of frames than is said       W707  a rule that two blocks define differently
    W703  a label that names another command          W708  an erratum that mends nothing any more
    W709  a dialog with a command that nothing defines
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from specwire.generator.abnf import parse_grammar
from specwire.generator.diagnostics import Diagnostic, Diagnostics, Severity, Source, Span
from specwire.generator.documents.blocks import Block, cut_blocks
from specwire.generator.documents.changes import RuleChange, rule_changes
from specwire.generator.documents.conversion import Converted, convert
from specwire.generator.documents.facts import Facts, clean, read_facts
from specwire.generator.documents.joining import GrammarText, join_blocks
from specwire.generator.documents.kinds import RULE_START
from specwire.generator.documents.profile_text import edit_source, new_profile
from specwire.generator.documents.repairs import propose_errata
from specwire.generator.errata import read_published
from specwire.generator.profile import Erratum, LoadedProfile, Profile
from specwire.generator.profile_file import NAME, PROFILE, load_profile
from specwire.generator.sources import GRAMMAR
from specwire.generator.syntax import Rulelist

LARGEST_DOCUMENT = 8 * 2**20
"""Octets; a specification with every figure drawn in it has not a tenth of that."""
MOST_RULES = 4000
"""Lines that begin like rules; the largest published grammars have some hundred."""
LARGEST_GRAMMAR = 200_000
"""Characters in all blocks together."""
LONGEST_RULE = 10_000
"""Characters of one rule with its comments."""
_NO_GRAMMAR_HELP = (
    "a grammar has rules such as 'NOM = signature %x07 credit', in a block of its own or as plain text"
)


@dataclass(frozen=True)
class Imported:
    """What the two files of the folder shall hold, and what there is to say about it."""

    grammar_text: str
    profile_text: str
    diagnostics: tuple[Diagnostic, ...]
    facts: Facts
    blocks: tuple[Block, ...]
    """The blocks that the grammar was made of."""
    rules: int
    changes: tuple[RuleChange, ...]
    """What the new rules change about those of the folder; empty where there were none."""
    is_new: bool
    """The folder held no grammar and no profile."""


def import_document(path: Path, protocol: str, *, folder: Path | None = None, shown: str = "") -> Imported:
    """Return what the folder of `protocol` shall hold, made of the document at `path`.

    `folder` is the protocol's folder, which need not be there; `shown` is that folder as diagnostics print it.

    Raises:
        SpecError: the document holds no grammar, or one that cannot be read; the profile is at fault.
        OSError: the document cannot be read.
    """
    diagnostics = Diagnostics()
    octets = path.read_bytes()
    source = _read_text(path, octets, diagnostics)
    _check_protocol(protocol, source, diagnostics)
    draft = _draft(source, protocol, diagnostics)
    shown = shown or protocol
    loaded = _existing(folder, shown)
    old = _published(folder, shown)
    written = Source(f"{shown}/{GRAMMAR}", draft.text.text)
    found = Diagnostics()
    rulelist = read_published(written, loaded or _no_profile(protocol), found)
    diagnostics.extend(draft.text.in_document(map(_soften, found), written.path))
    diagnostics.raise_errors()
    sha256 = hashlib.sha256(octets).hexdigest()
    if loaded is None:
        errata = tuple(propose_errata(written, rulelist, tuple(found)))
        profile_text = _new_profile(draft, protocol, path.name, sha256, errata)
    else:
        profile_text = edit_source(loaded.source.text, document=draft.facts.published_as, sha256=sha256)
    return Imported(
        grammar_text=written.text,
        profile_text=profile_text,
        diagnostics=tuple(diagnostics),
        facts=draft.facts,
        blocks=draft.blocks,
        rules=len(rulelist.rules),
        changes=rule_changes(old, _unmended(written)) if old else (),
        is_new=loaded is None and old is None,
    )


@dataclass(frozen=True, slots=True)
class _Draft:
    """What the document gives: the grammar with its way back, and what a profile can say of frame tables."""

    text: GrammarText
    facts: Facts
    blocks: tuple[Block, ...]
    converted: Converted


def _draft(source: Source, protocol: str, diagnostics: Diagnostics) -> _Draft:
    blocks = tuple(block for block in cut_blocks(source) if block.kind != "other")
    _check_size(blocks, diagnostics)
    facts = read_facts(source.text.split("\n"), blocks, protocol)
    text = GrammarText()
    for block in blocks:
        if not block.closed:
            message = f"this block is never closed; read up to line {block.last_line}"
            help = "close it in the document where the grammar ends"
            diagnostics.warning("W701", block.span, message, help)
    join_blocks([block for block in blocks if block.kind == "grammar"], text, diagnostics)
    converted = convert(source, blocks, protocol, text, diagnostics)
    if not text.lines and not diagnostics.errors:
        message = "the document holds no grammar and no frame table"
        diagnostics.error("E702", Span(Source(source.path, ""), 1, 1, 1, 2), message, _NO_GRAMMAR_HELP)
    diagnostics.raise_errors()
    text.put_above(_head(facts))
    return _Draft(text, facts, blocks, converted)


def _check_size(blocks: Sequence[Block], diagnostics: Diagnostics) -> None:
    """Refuse what would take long to read and is no grammar: data that happens to look like rules."""
    size = rule = 0
    for block in blocks:
        for number, line in enumerate(block.lines, start=block.first_line):
            size += len(line)
            rule = len(line) if RULE_START.match(line) else rule + len(line)
            if rule > LONGEST_RULE or size > LARGEST_GRAMMAR:
                what = f"rule of {LONGEST_RULE}" if rule > LONGEST_RULE else f"grammar of {LARGEST_GRAMMAR}"
                span = Span(Source(block.source.path, ""), number, 1, number, 2)
                message = f"a {what} characters and more is data, not something to read"
                diagnostics.error("E703", span, message, "cut the grammar out of the document by hand")
                diagnostics.raise_errors()


def _new_profile(draft: _Draft, protocol: str, file_name: str, sha256: str, errata: Sequence[Erratum]) -> str:
    return new_profile(
        protocol,
        draft.facts,
        document=draft.facts.published_as or clean(file_name),
        sha256=sha256,
        errata=(*errata, *draft.converted.errata),
        commands=draft.converted.commands,
        frames=draft.converted.frames,
    )


def _read_text(path: Path, octets: bytes, diagnostics: Diagnostics) -> Source:
    """Return the document as text; octets that are not UTF-8 stay what they are, and are pointed at later."""
    source = Source(path.as_posix(), "")
    whole = Span(source, 1, 1, 1, 2)
    nul = octets.find(b"\0")
    if len(octets) > LARGEST_DOCUMENT:
        message = f"{len(octets)} octets are more than any specification has"
        diagnostics.error("E703", whole, message, "import the document itself, not an archive of it")
    elif nul >= 0:
        message = f"this is not a text: octet {nul} is NUL"
        diagnostics.error("E701", whole, message, "save the document as UTF-8 text")
    diagnostics.raise_errors()
    text = octets.decode("utf-8-sig", "surrogateescape").replace("\r\n", "\n").replace("\r", "\n")
    source = Source(path.as_posix(), text)
    if sum(1 for line in text.split("\n") if RULE_START.match(line)) > MOST_RULES:
        message = f"more than {MOST_RULES} lines begin like rules"
        diagnostics.error(
            "E703", Span(Source(source.path, ""), 1, 1, 1, 2), message, "cut the grammar out of it by hand"
        )
    diagnostics.raise_errors()
    return source


def _check_protocol(protocol: str, source: Source, diagnostics: Diagnostics) -> None:
    if not NAME.match(protocol):
        help = "use lower-case letters, digits and '_', a letter first"
        diagnostics.error("E700", Span(source, 1, 1, 1, 2), f"{protocol!r} cannot name a package", help)
        diagnostics.raise_errors()


def _head(facts: Facts) -> list[str]:
    return [
        f"; {facts.title} ({facts.edition}).",
        "; The rules are those of the published document; what they leave open is said in profile.toml.",
        "",
    ]


def _existing(folder: Path | None, shown: str) -> LoadedProfile | None:
    if folder is None or not (folder / PROFILE).exists():
        return None
    diagnostics = Diagnostics()
    loaded = load_profile(folder, diagnostics, shown=shown)
    return loaded if loaded.source.text.strip() else None


def _no_profile(protocol: str) -> LoadedProfile:
    return LoadedProfile(Profile(protocol), Source(PROFILE, ""))


def _published(folder: Path | None, shown: str) -> Rulelist | None:
    """Return the rules that the folder holds now, as far as they can be read."""
    if folder is None or not (folder / GRAMMAR).is_file():
        return None
    text = (folder / GRAMMAR).read_bytes().decode("utf-8", "surrogateescape")
    return _unmended(Source(f"{shown}/{GRAMMAR}", text))


def _unmended(source: Source) -> Rulelist:
    return parse_grammar(source, dialect="zeromq", diagnostics=Diagnostics())


def _soften(diagnostic: Diagnostic) -> Diagnostic:
    """An erratum that a new edition has made needless is for the user to take out, and stops nothing here."""
    if diagnostic.code != "E506":
        return diagnostic
    return replace(diagnostic, severity=Severity.WARNING, code="W708")
