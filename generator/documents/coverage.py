"""Coverage report: what a document says about the wire that the compiled protocol does not account for.

    document --cut--> prose --sentences of interest--> accounted for, or open
        ├--import--> rules that grammar.abnf does not have, or has with another text
        └--`find_examples`--> messages that are decoded

A sentence is of interest if it has a word of RFC 2119, a word about frames and octets, or the name of
a rule. A name that is also an ordinary word counts only where it is written as a name: in quotes or
markup, in capitals, or next to a word such as ``field``. A sentence is accounted for if

- an entry of ``[[coverage]]`` in the profile has its words or its section;
- the profile or a comment of the grammar quotes six of its words in a row, or it holds ``[[prose]]``;
- a diagnostic of the import points to its line, or it announces an example, which is decoded;
- the compiled protocol shows what it states: constant octets, the size of a rule, the sender of a
  message, the reply to an unexpected message, or that a message has the field of a list item.

Only statements without a condition are compared with the protocol, because a grammar has no conditions.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from specwire.generator import ir
from specwire.generator.abnf.parser import parse_grammar
from specwire.generator.abnf.sources import DEFINED
from specwire.generator.diagnostics import Diagnostics, Source, SpecError
from specwire.generator.documents.blocks import Block, cut_blocks
from specwire.generator.documents.changes import RuleChange
from specwire.generator.documents.examples import Example, find_examples
from specwire.generator.documents.facts import find_headings
from specwire.generator.documents.importing import Imported, import_document
from specwire.generator.documents.prose import Sentence, lines_outside, split_sentences
from specwire.generator.documents.reading import read_document, read_octets
from specwire.generator.documents.shown import REQUIREMENT, Shown
from specwire.generator.ir.names import fold
from specwire.generator.pipeline import Compilation
from specwire.generator.profile.reader import load_profile
from specwire.generator.profile.tables import CoverageEntry, Profile

QUOTED_WORDS = 6
"""Consecutive words of a sentence that the profile must have to quote it; all words of a shorter one."""
NEAR_LINES = 6
"""Lines above an example in which the prose may name its message."""

_FRAME_WORD = re.compile(
    r"\b(?:frames?|octets?|bytes?|fields?|headers?|multi-?part"
    r"|(?:big|little)[- ]?endian|network (?:byte )?order)\b",
    re.IGNORECASE,
)
_CONDITION = re.compile(
    r"\b(?:if|when|whenever|unless|until|while|where|after|before|except)\b", re.IGNORECASE
)
_LEGAL = re.compile(
    r"(?:licen[cs]e|copyright|preamble|language|references|acknowledge?ments?)\b", re.IGNORECASE
)
_ITEM = re.compile(r"[ \t]*(?:[*+•-]|\d+[.)]|::)[ \t]+")
_MARKUP = re.compile(r"^(?:\.\. |:[\w-]+:|\+[-=+]+|\||```|~~~|\[\[|[=*#~^\"'.+_-]{3,}$)|^[^A-Za-z]*$")
_WORD = re.compile(r"[\w%]+(?:-\w+)*")
_INCLUDES = re.compile(r"\b(?:SHALL|MUST) (?:include|contain)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class OpenSentence:
    """A sentence that nothing accounts for, with its line, and the words for which it is listed.

    `note` says how the compiled protocol differs from the sentence, if it does.
    """

    section: str
    line: int
    text: str
    words: tuple[str, ...]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Decoded:
    """Result of decoding octets: the message and its fields, or the text of the error."""

    message: str
    fields: dict[str, Any]
    error: str = ""


@dataclass(frozen=True, slots=True)
class DecodedExample:
    """An example, the frames that were decoded, and the result."""

    example: Example
    frames: tuple[bytes, ...]
    decoded: Decoded
    accepted: bool = False
    """An entry of ``[[coverage]]`` accounts for an error."""


@dataclass(frozen=True, slots=True)
class Coverage:
    """Report about one document.

    Attributes:
        sentences: number of all sentences of interest.
        accounted: number of sentences by what accounts for them.
        rules: rules that differ, each with its line in the document, 0 if it has none.
        stale: entries of ``[[coverage]]`` that fit nothing in the document.
        unread: why the rules of the document could not be compared.
    """

    document: str
    sentences: int
    accounted: dict[str, int]
    open: tuple[OpenSentence, ...]
    rules: tuple[tuple[int, RuleChange], ...]
    examples: tuple[DecodedExample, ...]
    stale: tuple[CoverageEntry, ...]
    unread: str = ""

    @property
    def is_complete(self) -> bool:
        """Whether nothing is left to decide."""
        failed = any(row.decoded.error and not row.accepted for row in self.examples)
        return not (self.open or self.rules or self.stale or self.unread or failed)


def check_coverage(
    path: Path, folder: Path, compiled: Compilation, decode: Callable[[Sequence[bytes]], Decoded]
) -> Coverage:
    """Return the coverage report about the document at `path` and the protocol in `folder`.

    Args:
        decode: decodes the frames of an example with the package of the protocol.

    Raises:
        SpecError: the document is not a text.
        OSError: the document cannot be read.
    """
    source = read_document(path, read_octets(path), Diagnostics())
    blocks = cut_blocks(source)
    profile = load_profile(folder, Diagnostics(), shown=folder.as_posix()).profile
    report = _Report(source, blocks, profile, compiled)
    imported, unread = _import(path, folder)
    reported = {found.span.line for found in imported.diagnostics} if imported else set()
    accounted, open_ = report.sentences(reported)
    examples = tuple(report.example(example, decode) for example in report.examples)
    rules = tuple(report.rules(imported)) if imported else ()
    return Coverage(
        document=source.path,
        sentences=sum(accounted.values()) + len(open_),
        accounted=dict(accounted),
        open=tuple(open_),
        rules=rules,
        examples=examples,
        stale=tuple(entry for number, entry in enumerate(profile.coverage) if number not in report.used),
        unread=unread,
    )


def _import(path: Path, folder: Path) -> tuple[Imported | None, str]:
    """Return the import of the document, or why it failed; neither if the document has no grammar."""
    try:
        return import_document(path, folder.name, folder=folder, shown=folder.as_posix()), ""
    except SpecError as error:
        faults = [found for found in error.diagnostics if found.severity == "error"]
        if any(found.code == "E702" for found in faults):
            return None, ""
        first = faults[0]
        return None, f"line {first.span.line}: {first.message} [{first.code}]"


class _Report:
    """The sentences of one document, compared with one protocol."""

    def __init__(
        self, source: Source, blocks: tuple[Block, ...], profile: Profile, compiled: Compilation
    ) -> None:
        self.lines = source.text.split("\n")
        self.profile = profile
        self.names = Shown(compiled)
        self.used: set[int] = set()
        """Numbers of the entries of ``[[coverage]]`` that fit something."""
        self.examples = list(find_examples(self.lines, blocks))
        self._headings = find_headings(self.lines, blocks)
        shown = {n for e in self.examples for n in range(e.line, e.line + e.text.count("\n") + 1)}
        prose = [(number, line) for number, line in lines_outside(source, blocks) if number not in shown]
        self._prose = list(_sentences(prose, self._headings))
        self._quotes = list(_quotes(profile, compiled))

    def sentences(self, reported: set[int]) -> tuple[Counter[str], list[OpenSentence]]:
        """Return the number of sentences by what accounts for them, and the open ones."""
        accounted: Counter[str] = Counter()
        open_: list[OpenSentence] = []
        for sentence in self._prose:
            section = self._section(sentence.line)
            words = self._interest(sentence.text)
            is_acknowledged = self._acknowledged(sentence.text, section)
            if not words or _LEGAL.match(section):
                continue
            if is_acknowledged:
                accounted["[[coverage]]"] += 1
                continue
            reason, note = self._reason(sentence)
            if not reason and sentence.line in reported:
                reason = "a diagnostic of the import"
            if reason and not note:
                accounted[reason] += 1
            else:
                open_.append(OpenSentence(section, sentence.line, sentence.text, words, note))
        return accounted, open_

    def _section(self, line: int) -> str:
        return next((text for number, text in reversed(self._headings) if number <= line), "")

    def _interest(self, text: str) -> tuple[str, ...]:
        """Return the words for which a sentence is listed, each once."""
        found = [match.group() for match in REQUIREMENT.finditer(text)]
        found += [match.group().lower() for match in _FRAME_WORD.finditer(text)]
        found += self.names.rules_in(text)
        return tuple(dict.fromkeys(found))

    def _acknowledged(self, text: str, section: str) -> bool:
        """Whether a ``[[coverage]]`` entry fits a text or its section; each such entry is marked as used."""
        found = False
        for number, entry in enumerate(self.profile.coverage):
            if _fits(entry, text, section):
                self.used.add(number)
                found = True
        return found

    def _reason(self, sentence: Sentence) -> tuple[str, str]:
        """Return what accounts for a sentence, and how the protocol differs from it."""
        words = _words(sentence.text)
        shown = f" {' '.join(words)} "
        if any(
            f" {' '.join(_words(statement.text.rstrip('…')))} " in shown for statement in self.profile.prose
        ):
            return "[[prose]]", ""
        if any(_quotes_sentence(quote, words) for quote in self._quotes):
            return "a quotation in the profile or the grammar", ""
        if self._introduces(sentence):
            return "the example below it", ""
        if self.names.answers_unexpected(sentence.text):
            return "[unexpected]", ""
        is_conditional = _CONDITION.search(sentence.text) is not None
        reason, note = ("", "") if is_conditional else self.names.compare(sentence.text)
        if reason or note:
            return reason, note
        if self.names.describes_field(sentence.text) or (not is_conditional and self._includes(sentence)):
            return "a field of a message", ""
        return "", ""

    def _introduces(self, sentence: Sentence) -> bool:
        """Whether a sentence only announces the example below it."""
        announces = sentence.text.endswith(":") and not REQUIREMENT.search(sentence.text)
        return announces and any(self._above(example) == sentence for example in self.examples)

    def _above(self, example: Example) -> Sentence | None:
        """Return the sentence directly above an example."""
        above = [s for s in self._prose if example.line - NEAR_LINES <= s.line < example.line]
        return above[-1] if above else None

    def _includes(self, sentence: Sentence) -> bool:
        """Whether a sentence only states that a message has some fields, and it has them."""
        stated = _INCLUDES.search(sentence.text)
        messages = self.names.messages_in(sentence.text) or self._messages_of(self._section(sentence.line))
        if stated is None or not messages:
            return False
        named = {fold(name) for name in self.names.rules_in(sentence.text[stated.end() :])}
        had = [{fold(field.name) for field in message.fields} for message in messages]
        return bool(named) and all(named <= fields for fields in had)

    def _messages_of(self, section: str) -> list[ir.Message]:
        words = _words(section)
        return [m for m in self.names.compiled.protocol.messages if m.name.lower() in words]

    def rules(self, imported: Imported) -> Iterator[tuple[int, RuleChange]]:
        """Yield the rules whose text in the document differs from the grammar, with their lines."""
        added = {fold(name) for rules in self.profile.rules for name in DEFINED.findall(rules.text)}
        written = Source("", imported.grammar_text)
        parsed = parse_grammar(written, dialect="zeromq", diagnostics=Diagnostics())
        lines = {str(rule): imported.text.origins[rule.span.line - 1] for rule in parsed.rules}
        for change in imported.changes:
            text = f"{change.rule} = {change.now or change.was}"
            if self._acknowledged(text, "") or (change.was is None and fold(change.rule) in added):
                continue
            origin = lines.get(change.rule)
            yield (origin.line if origin else 0), change

    def example(self, example: Example, decode: Callable[[Sequence[bytes]], Decoded]) -> DecodedExample:
        """Return the first reading of an example that decodes; otherwise the error of the first one."""
        tried = [(frames, decode(frames)) for frames in example.readings]
        frames, decoded = next((row for row in tried if not row[1].error), tried[0])
        announced = self._announced(example)
        if not decoded.error and announced and fold(announced) != fold(decoded.message):
            error = f"the text above names {announced}, but the octets are {decoded.message}"
            decoded = Decoded(decoded.message, decoded.fields, error)
        accepted = self._acknowledged(example.text, self._section(example.line))
        return DecodedExample(example, frames, decoded, accepted)

    def _announced(self, example: Example) -> str:
        """Return the only message that the sentence above an example names; empty if there is none."""
        above = self._above(example)
        messages = self.names.messages_in(above.text) if above else []
        return messages[0].name if len(messages) == 1 else ""


def _sentences(lines: Iterable[tuple[int, str]], headings: Sequence[tuple[int, str]]) -> Iterator[Sentence]:
    """Yield the sentences of the prose, without headings, drawings and markup.

    A list item is a paragraph.
    """
    skipped = {number for number, _ in headings}
    paragraph: list[tuple[int, str]] = []
    literal: int | None = None
    margin: int | None = None
    for number, line in lines:
        indent = len(line) - len(line.lstrip())
        if literal is not None and line.strip() and indent <= literal:
            literal = None
        item = _ITEM.match(line)
        # Text that is indented deeper than a line without a bullet is the definition of that line.
        deeper = margin is not None and indent > margin
        if deeper and paragraph:
            yield from _joined(split_sentences(paragraph[:-1]))
            paragraph = paragraph[-1:]
        if (item or deeper) and paragraph:
            yield from _joined(split_sentences(paragraph))
            paragraph = []
        if number not in skipped and literal is None and not _MARKUP.match(line.strip()):
            paragraph.append((number, line[item.end() :] if item else line))
        margin = None if item or not line.strip() else indent
        if line.rstrip().endswith("::"):
            literal = indent
    yield from _joined(split_sentences(paragraph))


def _joined(sentences: Iterable[Sentence]) -> Iterator[Sentence]:
    """Join pieces that continue in lower case: behind a semicolon, or ``e.g.``."""
    last: Sentence | None = None
    for sentence in sentences:
        if last is not None and sentence.text[:1].islower() and sentence.line - last.line < NEAR_LINES:
            last = Sentence(f"{last.text} {sentence.text}", last.line)
            continue
        if last is not None:
            yield last
        last = sentence
    if last is not None:
        yield last


def _fits(entry: CoverageEntry, text: str, section: str) -> bool:
    """Whether an entry is about a text; line ends, markup and letter case are not compared."""
    if not entry.text and not entry.section:
        return False
    in_text = f" {' '.join(_words(entry.text))} " in f" {' '.join(_words(text))} "
    return (not entry.text or in_text) and (not entry.section or _words(entry.section) == _words(section))


def _quotes(profile: Profile, compiled: Compilation) -> Iterator[str]:
    """Yield the texts in which the profile and the comments of the grammar may quote the document."""
    tables = (profile.errata, profile.rules, tuple(profile.types.values()), tuple(profile.roles.values()))
    for table in tables:
        for row in msgspec.to_builtins(table):
            yield from (row[key] for key in ("why", "doc") if row.get(key))
    for rule in compiled.grammar.rules:
        yield " ".join(comment.text for comment in (*rule.leading, *rule.trailing))


def _quotes_sentence(quote: str, words: Sequence[str]) -> bool:
    size = min(QUOTED_WORDS, len(words))
    text = f" {' '.join(_words(quote))} "
    runs = (words[at : at + size] for at in range(len(words) - size + 1))
    return size > 2 and any(f" {' '.join(run)} " in text for run in runs)


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())
