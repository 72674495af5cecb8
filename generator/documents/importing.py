"""Import of a document as the files of a protocol's folder; this module writes no file.

The grammar blocks of a document are joined. Frame tables become rules. Drawn dialogs become rules
if the grammar has no dialog. An existing folder keeps its profile: only ``[source]`` changes, and
outdated errata are reported.

    E700  an invalid protocol name
    E701  not a text
    E702  a text without grammar, frame table or dialog
    E703  a document that is too large
    E704  a frame table that cannot be read           W704  a frame without a description
    E705  a dialog that cannot be read                W705  a constant of a different size than stated
    W701  a block that is never closed                W706  frames out of order
    W702  a different number of frames than stated    W707  a rule that two blocks define differently
    W703  a label that names another command          W708  an outdated erratum
    W709  a dialog with an undefined command
    W710  a command without a name                    W711  two commands with one name
    W712  a rule name with a space                    W713  a message with a sender that does not match
    W714  a rule without a name                       W715  a misspelled name
    W716  a character that is not in ABNF             W717  names that another document may define
    W718  a sender assumed from the name
    W719  prose about frames, numbers or letters that the grammar does not show
    W720  a definition that is assumed for a name    W721  an encoding other than UTF-8
    W722  a payload of unknown messages              W723  a key of a payload without a known type
    W724  a key without a name                       W725  a payload that is not in the document any more
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from specwire.generator.abnf.lines import read_grammar
from specwire.generator.abnf.parser import parse_grammar
from specwire.generator.abnf.sources import DEFINED, GRAMMAR, read_published, read_rules
from specwire.generator.abnf.syntax import Rulelist
from specwire.generator.diagnostics import Diagnostic, Diagnostics, Severity, Source, Span
from specwire.generator.documents.blocks import Block, cut_blocks, whole_grammar
from specwire.generator.documents.borrowed import find_base, report_borrowed, undefined_names
from specwire.generator.documents.changes import RuleChange, rule_changes
from specwire.generator.documents.comments import without_comments
from specwire.generator.documents.conventions import propose_rules
from specwire.generator.documents.conversion import Converted, convert
from specwire.generator.documents.facts import Facts, clean, read_facts
from specwire.generator.documents.joining import GrammarText, join_blocks
from specwire.generator.documents.messages import forgotten_messages
from specwire.generator.documents.payload_files import (
    PayloadFile,
    PayloadOptions,
    add_tables,
    read_payloads,
    report_gone,
)
from specwire.generator.documents.profile_text import Proposals, edit_edition, edit_source, new_profile
from specwire.generator.documents.prose import find_statements, fixed_values
from specwire.generator.documents.reading import check_size, read_document, read_octets
from specwire.generator.documents.repairs import octet_rules, propose_errata
from specwire.generator.ir.names import class_name, fold
from specwire.generator.profile.reader import NAME, PROFILE, load_profile
from specwire.generator.profile.tables import Erratum, LoadedProfile, Profile, SourceDocument

_NAMELESS = re.compile(r"[ \t]*(?:[A-Za-z]:[A-Za-z][\w-]*|[*()/|\[\]]|[ \t])+$")
_NO_GRAMMAR_HELP = (
    "a grammar has rules such as 'NOM = signature %x07 credit', in a separate block or as plain text"
)


@dataclass(frozen=True)
class Imported:
    """The contents of the two files of the folder, and the findings about the document."""

    grammar_text: str
    """Empty if the document has no grammar, but payloads of a protocol in the folder."""
    profile_text: str
    diagnostics: tuple[Diagnostic, ...]
    facts: Facts
    blocks: tuple[Block, ...]
    """The blocks from which the grammar was built."""
    rules: int
    changes: tuple[RuleChange, ...]
    """Changes from the rules in the folder; empty if there were none."""
    is_new: bool
    """Whether the folder had neither grammar nor profile."""
    text: GrammarText
    """The grammar's text, with the places of its lines in the document."""
    errata: tuple[Erratum, ...]
    """The errata of a new profile; empty if the profile exists."""
    stale: tuple[int, ...]
    """The numbers, from 0, of outdated errata in an existing profile."""
    edition_was: str | None
    """The edition of the existing profile, if it changes."""
    payloads: tuple[PayloadFile, ...] = ()
    """The payloads that the document describes."""


def import_document(
    path: Path,
    protocol: str,
    *,
    folder: Path | None = None,
    shown: str = "",
    comments: bool = True,
    edition: str | None = None,
    payload_options: PayloadOptions | None = None,
) -> Imported:
    """Return the contents of the folder of `protocol` for the document at `path`.

    A document that describes payloads, but has no grammar, adds them to an existing folder.

    Args:
        folder: the protocol's folder, which need not exist.
        shown: the folder as diagnostics print it.
        comments: whether the grammar keeps the document's comments.
        edition: the name of the edition; None for the one that the document states.
        payload_options: what the user states about the payloads.

    Raises:
        SpecError: the document has no grammar, or one that cannot be read, or the profile has an error.
        OSError: the document cannot be read.
    """
    diagnostics = Diagnostics()
    octets = read_octets(path)
    source = read_document(path, octets, diagnostics)
    _check_protocol(protocol, source, diagnostics)
    shown = shown or protocol
    loaded = _existing(folder, shown)
    options = payload_options or PayloadOptions(comments=comments)
    classes = _rule_classes(loaded, shown)
    payloads = read_payloads(path, source, classes, options, diagnostics)
    if loaded:
        report_gone(path, payloads, loaded, diagnostics)
    if payloads and not _blocks(source):
        return _payloads_alone(source, loaded, payloads, diagnostics)
    draft = _draft(source, protocol, diagnostics, comments=comments, edition=edition)
    old = _published(folder, shown)
    written = Source(f"{shown}/{GRAMMAR}", draft.text.text)
    found = Diagnostics()
    rulelist = read_published(written, loaded or _no_profile(protocol), found)
    diagnostics.extend(draft.text.in_document(map(_soften, found), written.path))
    diagnostics.raise_errors()
    sha256 = hashlib.sha256(octets).hexdigest()
    errata: tuple[Erratum, ...] = ()
    edition_was: str | None = None
    if loaded is None:
        rules = _Rules(written, rulelist, tuple(found))
        proposed = _propose(source, draft, rules, protocol, folder, diagnostics)
        errata = tuple(proposed.errata)
        document = SourceDocument(draft.facts.published_as or clean(path.name), sha256)
        profile_text = new_profile(protocol, draft.facts, document, proposed)
    else:
        profile_text, edition_was = _edit_profile(loaded, draft.facts, sha256, is_named=edition is not None)
    known = loaded.profile.payload if loaded else ()
    return Imported(
        grammar_text=written.text,
        profile_text=add_tables(profile_text, payloads, known),
        diagnostics=tuple(diagnostics),
        facts=draft.facts,
        blocks=draft.blocks,
        rules=len(rulelist.rules),
        changes=rule_changes(old, _uncorrected(written)) if old else (),
        is_new=loaded is None and old is None,
        text=draft.text,
        errata=errata,
        stale=_stale(loaded, tuple(found)),
        edition_was=edition_was,
        payloads=payloads,
    )


@dataclass(frozen=True, slots=True)
class _Rules:
    """The grammar that was written, its rules, and the faults that were found in it."""

    written: Source
    rulelist: Rulelist
    faults: tuple[Diagnostic, ...]


def _propose(
    source: Source,
    draft: _Draft,
    rules: _Rules,
    protocol: str,
    folder: Path | None,
    diagnostics: Diagnostics,
) -> Proposals:
    """Return the entries of a new profile."""
    slips = Diagnostics()
    rulelist = rules.rulelist
    published = [rule for rule in rulelist.rules if draft.text.is_published(rule.span.line)]
    missing = undefined_names(rulelist, published)
    added = propose_rules(rulelist, missing, slips)
    defined = {fold(name) for rule in added for name in DEFINED.findall(rule.text)}
    missing = [use for use in missing if fold(use.name) not in defined]
    base = find_base(missing, source.text, folder)
    report_borrowed(missing, base, slips)
    base = base if base and base.named else None
    inherited = base.names if base else ()
    errata = (
        *propose_errata(rules.written, rulelist, rules.faults, slips, inherited),
        *draft.converted.errata,
    )
    diagnostics.extend(draft.text.in_document(slips, rules.written.path))
    return Proposals(
        base=base.protocol if base else None,
        errata=errata,
        rules=added,
        commands=draft.converted.commands or tuple(map(str, forgotten_messages(rulelist))),
        frames=draft.converted.published,
        senders=draft.converted.senders,
        fields=draft.fields | {f.name: f.field for f in draft.converted.frames if f.field is not None},
        octets=octet_rules(errata),
        constants=fixed_values(rulelist, protocol),
        prose=find_statements(source, draft.blocks, rulelist, diagnostics),
    )


def _edit_profile(
    loaded: LoadedProfile, facts: Facts, sha256: str, *, is_named: bool
) -> tuple[str, str | None]:
    """Return an existing profile for a document, and the profile's edition if it changes.

    Args:
        is_named: the user has named the edition.
    """
    text = edit_source(loaded.source.text, document=facts.published_as, sha256=sha256)
    # Another document is another edition; the title belongs to the owner of the profile.
    is_other = is_named or loaded.profile.source.sha256 not in ("", sha256)
    if not is_other or loaded.profile.edition == facts.edition:
        return text, None
    return edit_edition(text, facts.edition), loaded.profile.edition


def _payloads_alone(
    source: Source,
    loaded: LoadedProfile | None,
    payloads: tuple[PayloadFile, ...],
    diagnostics: Diagnostics,
) -> Imported:
    """Return an import that adds payloads to a profile and changes nothing else.

    Raises:
        SpecError: there is no profile.
    """
    if loaded is None:
        message = "the document describes payloads, but not the messages that have them"
        help = "import the document with the grammar first, then this one into the same folder"
        diagnostics.error("E702", Span(Source(source.path, ""), 1, 1, 1, 2), message, help)
    diagnostics.raise_errors()
    assert loaded is not None
    return Imported(
        grammar_text="",
        profile_text=add_tables(loaded.source.text, payloads, loaded.profile.payload),
        diagnostics=tuple(diagnostics),
        facts=read_facts(source.text.split("\n"), (), loaded.profile.name),
        blocks=(),
        rules=0,
        changes=(),
        is_new=False,
        text=GrammarText(),
        errata=(),
        stale=(),
        edition_was=None,
        payloads=payloads,
    )


def _rule_classes(loaded: LoadedProfile | None, shown: str) -> set[str] | None:
    """Return the class names that the rules of a folder may have; None if there is no profile."""
    if loaded is None:
        return None
    rulelists = read_rules(loaded, Diagnostics(), shown=shown)
    return {class_name(rule.name) for rulelist in rulelists for rule in rulelist.rules}


def document_facts(path: Path) -> Facts:
    """Return the facts that a document states about itself, without reading its grammar.

    Raises:
        SpecError: the document is not a text.
        OSError: the document cannot be read.
    """
    source = read_document(path, read_octets(path), Diagnostics())
    return read_facts(source.text.split("\n"), _blocks(source), "")


@dataclass(frozen=True, slots=True)
class _Draft:
    """Grammar of the document with the places of its lines, and profile entries for frame tables."""

    text: GrammarText
    facts: Facts
    blocks: tuple[Block, ...]
    converted: Converted
    fields: dict[str, str]
    """Names of fields by their rules', where a rule could not keep its name."""


def _draft(
    source: Source, protocol: str, diagnostics: Diagnostics, *, comments: bool, edition: str | None
) -> _Draft:
    blocks = _blocks(source)
    check_size(blocks, diagnostics)
    facts = read_facts(source.text.split("\n"), blocks, protocol)
    if edition is not None:
        facts = replace(facts, edition=clean(edition))
    text = GrammarText()
    for block in blocks:
        if not block.closed:
            message = f"this block is never closed; read up to line {block.last_line}"
            help = "close the block in the document at the end of the grammar"
            diagnostics.warning("W701", block.span, message, help)
    _report_nameless(source, blocks, diagnostics)
    fields = join_blocks([block for block in blocks if block.kind == "grammar"], text, diagnostics)
    converted = convert(source, blocks, protocol, text, diagnostics)
    if not text.lines and not diagnostics.errors:
        drawn = next((block for block in blocks if block.kind == "dialog"), None)
        span = drawn.span if drawn else Span(Source(source.path, ""), 1, 1, 1, 2)
        message = "the document has no grammar and no frame table"
        message += "; it defines the commands of this dialog only in prose" if drawn else ""
        diagnostics.error("E702", span, message, _NO_GRAMMAR_HELP)
    diagnostics.raise_errors()
    head = _head(facts)
    text.put_above(head)
    if not comments:
        text = without_comments(text, len(head))
    return _Draft(text, facts, blocks, converted, fields)


def _blocks(source: Source) -> tuple[Block, ...]:
    """Return the blocks with grammar, frames and dialogs, or the whole document if it is a grammar."""
    blocks = tuple(block for block in cut_blocks(source) if block.kind != "other")
    whole = None if blocks else whole_grammar(source)
    return (whole,) if whole else blocks  # so that faults in its rules are reported at their places


def _report_nameless(source: Source, blocks: Sequence[Block], diagnostics: Diagnostics) -> None:
    """Report lines directly above a grammar that state senders and messages but have no name."""
    lines = source.text.split("\n")
    for block in blocks:
        above = lines[block.first_line - 2].rstrip("\r") if block.first_line > 1 else ""
        if block.kind == "grammar" and _NAMELESS.match(above):
            number, start = block.first_line - 1, len(above) - len(above.lstrip())
            span = Span(source, number, start + 1, number, len(above.rstrip()) + 1)
            message = "this line states who sends which messages, but it is not a rule: it has no name"
            diagnostics.warning(
                "W714",
                span,
                message,
                "the line is skipped; write it under [[rules]] in the profile, with a name",
            )


def _check_protocol(protocol: str, source: Source, diagnostics: Diagnostics) -> None:
    if not NAME.match(protocol):
        help = "use lower-case letters, digits and '_', beginning with a letter"
        diagnostics.error(
            "E700", Span(source, 1, 1, 1, 2), f"{protocol!r} is not a valid protocol name", help
        )
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


def _stale(loaded: LoadedProfile | None, found: Sequence[Diagnostic]) -> tuple[int, ...]:
    places = {diagnostic.span for diagnostic in found if diagnostic.code == "E506"}
    errata = range(len(loaded.profile.errata)) if loaded else ()
    keys = ("was", "rule")
    return tuple(
        n for n in errata if loaded and any(loaded.place("errata", n, key) in places for key in keys)
    )


def _no_profile(protocol: str) -> LoadedProfile:
    return LoadedProfile(Profile(protocol), Source(PROFILE, ""))


def _published(folder: Path | None, shown: str) -> Rulelist | None:
    """Return the current rules of the folder, as far as they can be read."""
    if folder is None or not (folder / GRAMMAR).is_file():
        return None
    with (folder / GRAMMAR).open("rb") as stream:
        return _uncorrected(Source(f"{shown}/{GRAMMAR}", read_grammar(stream)))


def _uncorrected(source: Source) -> Rulelist:
    return parse_grammar(source, dialect="zeromq", diagnostics=Diagnostics())


def _soften(diagnostic: Diagnostic) -> Diagnostic:
    """Return an error about an outdated erratum (E506) as a warning (W708)."""
    if diagnostic.code != "E506":
        return diagnostic
    return replace(diagnostic, severity=Severity.WARNING, code="W708")
