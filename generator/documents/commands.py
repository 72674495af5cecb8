"""Names of commands, from the title of a frame table, the sentence above it, or its section.

Two sections may each define a command with the same name, such as REQUEST in ``MDP/Client`` and
``MDP/Worker``. If their tables differ, both are commands. Each name is then qualified by its
heading, ``CLIENT-REQUEST``, and a dialog in that section refers to that command.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from specwire.generator.diagnostics import Diagnostics, Source, Span
from specwire.generator.documents.blocks import Block, line_above
from specwire.generator.documents.facts import find_headings
from specwire.generator.documents.frame_lists import parse_frame_list
from specwire.generator.documents.frametable import FrameTable, parse_frame_table
from specwire.generator.documents.kinds import LIST_SENTENCE
from specwire.generator.documents.tables import (
    Announced,
    Command,
    command_name,
    find_count,
    find_sentence,
    same_frames,
)

_SENTENCE_WITHIN = 6
"""Lines of prose above a table that are searched for its sentence."""
_ARTICLES = frozenset({"the", "a", "an", "of", "for", "and", "to"})
_SECTION_WORDS = frozenset({"command", "commands", "message", "messages", "service", "section", "frames"})
"""Words of a heading that describe the section and are not part of the command's name."""
_MAY_BE_EMPTY = re.compile(r"\bframe\s+(\d+)\s+(?:MAY|may|can)\s+be\s+empty\b", re.IGNORECASE)
_ANSWERS = re.compile(r"\b(?:repl(?:y|ies)|respon(?:ds?|se)|answers?)\b", re.IGNORECASE)
_REQUESTS = re.compile(r"\brequests?\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Commands:
    """The commands of a document, and the meanings of names in sections (by the line of the heading)."""

    commands: tuple[Command, ...]
    meant: Mapping[tuple[int, str], str]

    def meant_in(self, section: int, name: str) -> str:
        """Return the command that `name` refers to in a section, given by the line of its heading."""
        return self.meant.get((section, name), name)


@dataclass(frozen=True, slots=True)
class _Found:
    command: Command
    section: int
    heading: str


def find_commands(
    source: Source, lines: list[str], blocks: tuple[Block, ...], diagnostics: Diagnostics
) -> Commands:
    """Return the commands that the frame tables among `blocks` describe, in their order."""
    found = list(_found(source, lines, blocks, diagnostics))
    by_name: dict[str, list[_Found]] = {}
    for one in found:
        by_name.setdefault(one.command.name, []).append(one)
    named: dict[tuple[int, str], str] = {}
    for name, group in by_name.items():
        if len(group) > 1:
            named |= _qualified(name, group, diagnostics)
    commands: dict[str, Command] = {}
    for one in found:
        name = named.get((one.section, one.command.name), one.command.name)
        commands.setdefault(name, replace(one.command, name=name))
    return Commands(tuple(commands.values()), named)


def section_of(line: int, headings: Sequence[tuple[int, str]]) -> tuple[int, str]:
    """Return line and text of the heading above `line`; 0 and an empty text if there is none."""
    at = bisect_left(headings, (line, ""))
    return headings[at - 1] if at else (0, "")


def _found(
    source: Source, lines: list[str], blocks: tuple[Block, ...], diagnostics: Diagnostics
) -> Iterator[_Found]:
    headings = find_headings(lines, blocks)
    tables = [block for block in blocks if block.kind in ("frame table", "frame list")]
    sections = [section_of(block.first_line, headings) for block in tables]
    in_section = Counter(sections)
    for block, (section, heading) in zip(tables, sections, strict=True):
        is_list = block.kind == "frame list"
        table = parse_frame_list(block) if is_list else parse_frame_table(source, block.text, diagnostics)
        if table is None:
            continue
        table = _with_empty_frames(table, _prose_below(lines, block, blocks))
        said = _said_above(source, lines, block, blocks)
        name = command_name(table.title) or said.command
        if not name and (name := _after_heading(heading, said, in_section[section, heading])):
            message = f"the document does not name this command; it is named '{name}' after its section"
            help = "to name it, write a line such as 'OPEN command' directly above the table"
            diagnostics.warning("W710", table.span, message, help)
        if name:
            mine = said.announced if said.command in ("", name) else None
            yield _Found(Command(name, table, mine), section, heading)
        else:
            message = "the command of this frame table is not defined"
            diagnostics.error("E704", table.span, message, "name the command above the table: 'OPEN command'")


def _prose_below(lines: Sequence[str], block: Block, blocks: Sequence[Block]) -> str:
    """Return the text between a block and the next one, or the next heading."""
    below = [other.first_line for other in blocks if other.first_line > block.last_line]
    below += [number for number, _ in find_headings(list(lines), tuple(blocks)) if number > block.last_line]
    return "\n".join(lines[block.last_line : min(below, default=len(lines) + 1) - 1])


def _with_empty_frames(table: FrameTable, text: str) -> FrameTable:
    """Return the table with the frames marked that the `text` below it says may be empty."""
    empty = {int(number) for number in _MAY_BE_EMPTY.findall(text)}
    frames = tuple(replace(frame, may_be_empty=frame.number in empty) for frame in table.frames)
    return replace(table, frames=frames)


@dataclass(frozen=True, slots=True)
class _Said:
    """Statements above a table: the command, the number of frames, and the line directly above."""

    command: str = ""
    announced: Announced | None = None
    text: str = ""


def _said_above(source: Source, lines: list[str], block: Block, blocks: tuple[Block, ...]) -> _Said:
    prose, nearest = 0, ""
    counted: Announced | None = None
    for number, line in line_above(lines, block.first_line, blocks):
        nearest = nearest or line.strip()
        prose += bool(line.strip())
        if prose > _SENTENCE_WITHIN or number < block.first_line - 4 * _SENTENCE_WITHIN:
            break
        if listed := LIST_SENTENCE.match(line):
            return _Said(listed["command"] or "message", counted, nearest)
        said = find_sentence(line)
        count = said or (find_count(line) if line.strip() == nearest else None)
        if count and counted is None:
            span = Span(source, number, count.start() + 1, number, count.end() + 1)
            counted = Announced(int(count["count"]), bool(count["more"]), span)
        if said:
            return _Said(said["command"], counted, nearest)
    return _Said("", counted, nearest)


def _after_heading(heading: str, said: _Said, tables: int) -> str:
    """Return a name from the section's heading, or from the line above if the section has several tables."""
    words = re.findall(r"[A-Za-z0-9]+", heading)
    kept = [word for word in words if word.lower() not in _ARTICLES | _SECTION_WORDS]
    if not kept or not kept[0][0].isalpha() or len(kept) > 4:
        return ""
    if tables > 1:
        # "must reply with" is about the answer, whatever the sentence before it asked for.
        clause = re.split(r"(?<=[.;])\s", said.text)[-1]
        kept.append("reply" if _ANSWERS.search(clause) else "request" if _REQUESTS.search(clause) else "")
    return "-".join(kept) if kept[-1] else ""


def _qualified(name: str, group: Sequence[_Found], diagnostics: Diagnostics) -> dict[tuple[int, str], str]:
    """Return new names for commands with the same name, by section.

    Report those that cannot be distinguished.
    """
    first, *others = group
    different = [one for one in others if not same_frames(one.command.table, first.command.table)]
    if not different:
        return {}
    words = [re.findall(r"[a-z0-9]+", one.heading.lower()) for one in group]
    shared = set.intersection(*map(set, words))
    own = ["-".join(word for word in mine if word not in shared) for mine in words]
    if len(set(own)) < len(own) or not all(re.match(r"[a-z]", mine) for mine in own):
        for one in different:
            message = f"there is another frame table of {name} above"
            help = "write a heading above each table that names its part of the protocol"
            diagnostics.error("E704", one.command.table.span, message, help)
        return {}
    names = [f"{mine.upper() if name.isupper() else mine}-{name}" for mine in own]
    for one, new in zip(group, names, strict=True):
        message = (
            f"there are {len(group)} commands named {name}; that of section '{one.heading}' is "
            f"renamed to '{new}'"
        )
        help = f"in dialogs of that section '{name}' is read as '{new}'"
        diagnostics.warning("W711", one.command.table.span, message, help)
    return {(one.section, name): new for one, new in zip(group, names, strict=True)}
