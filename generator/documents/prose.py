"""Statements of a document outside its grammar: more frames, other kinds of numbers, other letters.

A grammar that shows one frame of a multipart message compiles, but the generated package rejects
every real message. Only the prose states the other frames. Import keeps such words in the profile
under ``[[prose]]``, and `specwire.generator.passes.claims` compares them with the layouts.

Import also proposes constants: the values that comments of the grammar require (``must be "FILEMQ"``).
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal

from specwire.generator import ir
from specwire.generator.abnf.statements import (
    NUMBER_WORDS,
    fixed_value,
    frame_words,
    number_kinds,
    quoted,
    shown_words,
)
from specwire.generator.abnf.syntax import Rulelist
from specwire.generator.diagnostics import Diagnostics, Source, Span
from specwire.generator.documents.blocks import Block
from specwire.generator.passes.declared import constant_of
from specwire.generator.passes.grammar import references, strings
from specwire.generator.passes.layout import FRAME_WORDS
from specwire.generator.passes.layouts import ValueLayout, words_of
from specwire.generator.passes.nesting import check_nesting
from specwire.generator.passes.resolve import resolve_names
from specwire.generator.passes.types import TypeReader
from specwire.generator.profile.tables import LoadedProfile, Profile, ProseStatement

MAX_OF_A_KIND = 5
"""Maximum number of statements about one subject that a profile keeps."""
_SENTENCE = re.compile(r"(?<=[.!?;])\s+|\n\s*\n")
_About = Literal["frames", "letters", "numbers"]
_FRAME_NAMES = frozenset({"frame", "msg"})


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of the prose with the line of its first word, from 1."""

    text: str
    line: int


def find_statements(
    source: Source, blocks: Sequence[Block], rulelist: Rulelist, diagnostics: Diagnostics
) -> tuple[ProseStatement, ...]:
    """Return statements of the prose outside `blocks` that the grammar does not show; report each as W719."""
    lines = lines_outside(source, blocks)
    sentences = list(split_sentences(lines))
    found = [
        *([] if _shows_frames(rulelist) else _about_frames(sentences)),
        *_about_numbers(sentences),
        *_about_letters(lines, rulelist),
    ]
    for statement in found:
        line = source.line(statement.line)
        span = Span(source, statement.line, 1, statement.line, max(2, len(line) + 1))
        diagnostics.warning(
            "W719",
            span,
            f"the prose '{statement.text}' describes {statement.about} that the grammar does not show",
            "the profile keeps the words under [[prose]], and `specwire check` compares them with the "
            "messages",
        )
    return tuple(found)


def find_sentences(source: Source, blocks: Sequence[Block]) -> Iterator[Sentence]:
    """Yield the sentences of the document outside `blocks`."""
    yield from split_sentences(lines_outside(source, blocks))


def fixed_values(rulelist: Rulelist, protocol: str) -> dict[str, str | int]:
    """Return the values that comments require, by rule, if the rule can be such a constant."""
    required = {
        rule.name: value
        for rule in rulelist.rules
        if (value := fixed_value(words_of(rule.trailing or rule.leading))) and rule.role is None
    }
    if not required:
        return {}
    unread = Diagnostics()
    grammar = resolve_names([rulelist], diagnostics=unread)
    reader = TypeReader(grammar, LoadedProfile(Profile(protocol), Source("", "")), unread)
    rules = {name: rule for name in required if (rule := grammar.rule(name))}
    faults = Diagnostics()
    check_nesting(grammar, list(rules.values()), faults)
    if faults.errors:
        return {}  # the grammar does not compile
    proposed: dict[str, str | int] = {}
    for name, rule in rules.items():
        fixed, layout = required[name], reader.layout(rule)
        type = layout.type if isinstance(layout, ValueLayout) else None
        if type is not None and isinstance(constant_of(fixed.value, type), ir.ConstantType):
            proposed[rule.name] = fixed.value
    return proposed


def lines_outside(source: Source, blocks: Sequence[Block]) -> list[tuple[int, str]]:
    """Return the lines of the document outside blocks, with their numbers."""
    inside = {number for block in blocks for number in range(block.first_line, block.last_line + 1)}
    return [(n, line) for n, line in enumerate(source.text.split("\n"), start=1) if n not in inside]


def split_sentences(lines: Sequence[tuple[int, str]]) -> Iterator[Sentence]:
    """Yield the sentences of the prose. A paragraph ends at an empty line or at a block."""
    paragraph: list[tuple[int, str]] = []
    for number, line in [*lines, (0, "")]:
        follows = bool(paragraph) and number == paragraph[-1][0] + 1
        if paragraph and (not follows or not line.strip()):
            yield from _split(paragraph)
            paragraph = []
        if line.strip():
            paragraph.append((number, line.strip()))


def _split(paragraph: Sequence[tuple[int, str]]) -> Iterator[Sentence]:
    """Yield the sentences of a paragraph, whose lines come with their numbers."""
    text = " ".join(line for _, line in paragraph)
    starts = [0, *accumulate(len(line) + 1 for _, line in paragraph)]
    begin = 0
    for piece in _SENTENCE.split(text):
        place = text.find(piece, begin)
        begin = place + len(piece)
        yield Sentence(piece, paragraph[bisect_right(starts, place) - 1][0])


def _about_frames(sentences: Sequence[Sentence]) -> list[ProseStatement]:
    found = [(sentence, words) for sentence in sentences if (words := frame_words(sentence.text))]
    return _statements("frames", ((words, sentence.line) for sentence, words in found))


def _about_numbers(sentences: Sequence[Sentence]) -> list[ProseStatement]:
    found = [
        (words, sentence.line)
        for sentence in sentences
        if NUMBER_WORDS.search(sentence.text)
        for _, words in number_kinds(sentence.text)
    ]
    return _statements("numbers", found)


def _about_letters(lines: Sequence[tuple[int, str]], rulelist: Rulelist) -> list[ProseStatement]:
    """Return words that spell a string of the grammar only in other letters."""
    literals = {
        literal.text
        for rule in rulelist.rules
        for literal in strings(rule.definition)
        if not literal.case_sensitive and not literal.case_marked and len(literal.text) > 1
    }
    shown: dict[str, dict[str, tuple[str, int]]] = {}
    for number, line in lines:
        for word, form in shown_words(line):
            shown.setdefault(word.lower(), {}).setdefault(word, (form, number))
    found = [
        next(iter(spellings.values()))
        for text in sorted(literals)
        if (spellings := shown.get(text.lower(), {})) and text not in spellings
    ]
    return _statements("letters", ((quoted(form), line) for form, line in found))


def _statements(about: _About, found: Iterable[tuple[str, int]]) -> list[ProseStatement]:
    """Return the first statements about a subject, each with the first line that has its words."""
    unique: dict[str, int] = {}
    for words, line in found:
        unique.setdefault(words, line)
    return [ProseStatement(words, about, line) for words, line in list(unique.items())[:MAX_OF_A_KIND]]


def _shows_frames(rulelist: Rulelist) -> bool:
    """Whether the grammar declares frames: in a comment, or by a rule named as one."""
    for rule in rulelist.rules:
        if any(FRAME_WORDS in comment.text.lower() for comment in (*rule.leading, *rule.trailing)):
            return True
        if any(use.name.lower() in _FRAME_NAMES for use in references(rule.definition)):
            return True
    return False
