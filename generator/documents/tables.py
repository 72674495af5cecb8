"""Conversion of frame tables to ABNF, for documents without a grammar.

Each table becomes a rule, and each frame an element named after its label: ``Job UUID`` becomes
``uuid``, ``POST body`` becomes ``body``, ``Service name`` becomes ``service``. Quoted constants are
named ``header`` and numbers ``command``, followed by the command's name: ``header-post``. Frames
that differ between tables also get the command's name. Each frame rule has the comment ``ZeroMQ
frame``.

If the document contradicts itself, the finding quotes both places, and the rule follows the table:
frames beyond the number in the sentence above it are optional.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from specwire.generator.diagnostics import Diagnostics, Span
from specwire.generator.documents.frametable import Frame, FrameTable
from specwire.generator.ir.names import fold

_COUNT = r"(?P<count>\d+)(?:\s+|-)(?P<more>or\s+more\s+)?(?:frames?|parts?)\b"
_SENTENCE = re.compile(
    r"\b(?:An?|The)\s+(?:\*{1,3}|_{1,3}|`{1,2}){0,2}(?P<command>[A-Z][A-Za-z0-9]*(?:[-_][A-Za-z0-9]+)*)"
    r"(?:\*{1,3}|_{1,3}|`{1,2}){0,2}\s+(?:command|message|request|reply|response|event)\s+"
    r"(?:(?:SHALL|MUST|must|shall)\s+)?(?:consists?\s+of|has|is)\s+(?:an?\s+multipart\s+message\s+of\s+)?"
    + _COUNT
)
_COUNTED = re.compile(rf"\b{_COUNT},?(?:\s[^:]{{0,60}})?:\s*$")
_KINDS_OF_VALUE = frozenset({"name", "code", "number", "value", "string"})
"""Words at the end of a label that describe the type of a value, not its meaning."""
FRAME_COMMENT = "ZeroMQ frame"


@dataclass(frozen=True, slots=True)
class Announced:
    """The sentence above a table: the number of frames of a command, and whether there may be more."""

    count: int
    more: bool
    span: Span


@dataclass(frozen=True, slots=True)
class Command:
    """A command with its table and the sentence above it, if there is one."""

    name: str
    table: FrameTable
    announced: Announced | None

    @property
    def open_ended(self) -> bool:
        """Whether more frames than the table lists may follow."""
        frames = self.table.frames
        more = bool(self.announced and self.announced.more and self.announced.count >= len(frames))
        return more or frames[-1].repeated


@dataclass(frozen=True, slots=True)
class TableRule:
    """A rule from a table: its name, its definition, the comment above it, and its place in the document."""

    name: str
    text: str
    comment: str
    span: Span
    field: str | None = None
    """The name of the frame, if the name of the rule includes the command."""


def find_sentence(text: str) -> re.Match[str] | None:
    """Return the match of ``A POST command consists of 7 or more frames`` in a line."""
    return _SENTENCE.search(text)


def find_count(text: str) -> re.Match[str] | None:
    """Return the match of ``2 or more frames, as follows:`` at the end of a line, which names no command."""
    return _COUNTED.search(text)


def same_frames(table: FrameTable, other: FrameTable) -> bool:
    """Whether two tables describe the same frames, regardless of names."""
    return [_layout(frame) for frame in table.frames] == [_layout(frame) for frame in other.frames]


def _layout(frame: Frame) -> tuple[str, bool, bool]:
    return _definition(frame), frame.repeated, frame.conditional


def command_name(title: str) -> str:
    """Return the command that the title of a table names: ``OPEN command`` gives ``OPEN``."""
    word = re.search(r"[A-Za-z][A-Za-z0-9_-]*", title)
    return word.group() if word else ""


def rules_of_tables(
    commands: Sequence[Command], defined: Collection[str], diagnostics: Diagnostics
) -> list[TableRule]:
    """Return the rules of all commands, then those of their frames, in the order of first use.

    Args:
        defined: the names that the document's grammar defines; no rules are written for them.
    """
    _check_claims(commands, diagnostics)
    differing = _differing(commands)
    messages: list[TableRule] = []
    frames: dict[str, TableRule] = {}
    for command in commands:
        names: list[str] = []
        for field, frame in _fields(command):
            own = frame.kind == "constant" or field in differing
            name = f"{field}-{command.name.lower()}" if own else field
            if name not in frames and fold(name) not in defined and (frame.kind == "unknown" or frame.digits):
                _report_unknown(frame, name, diagnostics)
            comment = frame.text if frame.name else frame.text.partition(":")[2].strip()
            frames.setdefault(
                name, TableRule(name, _definition(frame), comment, frame.span, field if own else None)
            )
            names.append(name)
        text = _sequence(command, names)
        if text.endswith(" *more"):
            last = command.table.frames[-1].span
            frames.setdefault("more", TableRule("more", "*OCTET", "Any further frames.", last))
        messages.append(
            TableRule(command.name, text, command.table.title or command.name, command.table.span)
        )
    return messages + _sorted_by_kind(list(frames.values()))


def _sorted_by_kind(rules: list[TableRule]) -> list[TableRule]:
    """Return the rules with constants first, `more` last, and the others in the order of the tables."""
    return sorted(rules, key=lambda rule: (rule.name == "more", rule.field is None and rule.name != "empty"))


def _sequence(command: Command, names: list[str]) -> str:
    """Return the elements of a message rule; those beyond the announced number are optional."""
    announced = command.announced
    sure = len(names)
    if announced and not announced.more and announced.count < len(names):
        sure = announced.count
    for position, frame in enumerate(command.table.frames[:sure]):
        if frame.conditional:
            sure = position
            break
    text = " ".join(names[:sure])
    optional = names[sure:]
    if optional:
        text += "".join(f" [ {name}" for name in optional) + " ]" * len(optional)
    last = command.table.frames[-1]
    if last.repeated and last.conditional and optional == names[-1:]:
        return f"{' '.join(names[:-1])} *{names[-1]}".strip()
    return f"{text} *more" if command.open_ended else text


def _fields(command: Command) -> list[tuple[str, Frame]]:
    """Return the frames with their names, each once in a command."""
    named: list[tuple[str, Frame]] = []
    counts: dict[str, int] = {}
    for frame in command.table.frames:
        field = _field(frame)
        counts[field] = counts.get(field, 0) + 1
        named.append((f"{field}-{counts[field]}" if counts[field] > 1 else field, frame))
    return named


def _field(frame: Frame) -> str:
    if frame.name:
        return frame.name
    match frame.kind:
        case "empty":
            return "empty"
        case "constant" if not frame.digits:
            return "header" if frame.quoted else "command"
    if frame.digits:
        return f"frame-{frame.number}"
    label = re.split(r"\s(?:for|as|from|to|in)\b", frame.label)[0]
    words = re.findall(r"[A-Za-z][A-Za-z0-9]*", label)
    while len(words) > 1 and words[-1].lower() in _KINDS_OF_VALUE:
        words.pop()
    return words[-1].lower() if words else f"frame-{frame.number}"


def _definition(frame: Frame) -> str:
    match frame.kind:
        case "empty":
            return "0OCTET"
        case "constant":
            return " / ".join(_constant(octets, quoted=frame.quoted) for octets in frame.constants)
        case "text":
            return "*VCHAR"
    fixed = f"{frame.size_octets}OCTET" if frame.size_octets else "*OCTET"
    return f"*1( {fixed} )" if frame.size_octets and frame.may_be_empty else fixed


def _constant(octets: bytes, *, quoted: bool) -> str:
    text = octets.decode("latin-1")
    if quoted and all(" " <= character <= "~" and character != '"' for character in text):
        return f'%s"{text}"'
    return "%x" + ".".join(f"{octet:02X}" for octet in octets)


def _differing(commands: Sequence[Command]) -> set[str]:
    """Return the names of frames that differ between the tables that have them."""
    definitions: dict[str, set[str]] = {}
    for command in commands:
        for field, frame in _fields(command):
            definitions.setdefault(field, set()).add(_definition(frame))
    return {field for field, found in definitions.items() if len(found) > 1}


def _report_unknown(frame: Frame, name: str, diagnostics: Diagnostics) -> None:
    message = f"the table does not define the content of frame {frame.number}"
    read = f"it is read as {len(frame.constants[0])} zero octets" if frame.digits else "it is read as octets"
    help = f"{read}; to change that, write an erratum for '{name}' in profile.toml"
    diagnostics.warning("W704", frame.span, message, help)


def _check_claims(commands: Sequence[Command], diagnostics: Diagnostics) -> None:
    by_name = {command.name: command for command in commands}
    for command in commands:
        _check_count(command, diagnostics)
        for position, frame in enumerate(command.table.frames):
            _check_size(frame, diagnostics)
            _check_number(command, position, frame, diagnostics)
            claimed = frame.stands_for
            if claimed and claimed != command.name and claimed in by_name:
                _report_label(command, frame, by_name[claimed], diagnostics)


def _check_count(command: Command, diagnostics: Diagnostics) -> None:
    announced, frames = command.announced, command.table.frames
    if announced is None or announced.count == len(frames):
        return
    if announced.more and announced.count < len(frames):
        return
    said = f"{announced.count} or more" if announced.more else f"{announced.count}"
    message = (
        f"the document states that {command.name} has {said} frames (line {announced.span.line}), "
        f"but its table lists {len(frames)}, up to '{frames[-1].text}' (line {frames[-1].span.line})"
    )
    beyond = announced.count < len(frames)
    help = "the additional frames are read as optional" if beyond else "the rule has the frames of the table"
    diagnostics.warning("W702", announced.span, message, help)


def _report_label(command: Command, frame: Frame, other: Command, diagnostics: Diagnostics) -> None:
    theirs = next((f for f in other.table.frames if f.kind == "constant" and not f.quoted), None)
    place = f"'{theirs.text}' (line {theirs.span.line})" if theirs else f"line {other.table.span.line}"
    message = (
        f"the table of {command.name} says '{frame.text}' (line {frame.span.line}), "
        f"but {other.name} has a separate table: {place}"
    )
    diagnostics.warning("W703", frame.span, message, f"it is read as the number of {command.name}")


def _check_size(frame: Frame, diagnostics: Diagnostics) -> None:
    wrong = [c for c in frame.constants if frame.size_octets is not None and len(c) != frame.size_octets]
    if wrong:
        message = f"'{frame.text}' states {frame.size_octets} octets, but its value has {len(wrong[0])}"
        diagnostics.warning("W705", frame.span, message, "the rule has the octets of the value")


def _check_number(command: Command, position: int, frame: Frame, diagnostics: Diagnostics) -> None:
    first = command.table.frames[0].number
    if frame.number != position + first:
        message = f"frame {frame.number} of {command.name} is in the place of frame {position + first}"
        diagnostics.warning(
            "W706", frame.span, message, "the rule has the frames in the order of their lines"
        )
