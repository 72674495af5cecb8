"""Classification of a document's blocks: a grammar, a frame table, a dialog, or something else.

Specifications show shell commands, C, packet drawings and traces in the same markup as their
grammar. So the lines of a grammar must be rules and their continuations, and contain notation that
only ABNF has (``%x01``, ``4OCTET``, ``*( … )``). A language that the markup names also decides.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from specwire.generator.abnf.parser import parse_grammar
from specwire.generator.diagnostics import Diagnostics, Source
from specwire.generator.documents.dialog_text import without_titles

Kind = Literal["grammar", "frame table", "frame list", "dialog", "other"]

GRAMMAR_LANGUAGES = frozenset({"abnf", "bnf", "ebnf", "grammar"})
_NO_LANGUAGE = frozenset({"", "text", "txt", "plain", "plaintext", "none", "default"})

RULE_START = re.compile(r"[ \t]*(?:[A-Za-z]:)?[A-Za-z][A-Za-z0-9_-]*[ \t]*=(?!=)/?")
_BNF = re.compile(r"[ \t]*<?[A-Za-z][\w-]*>?[ \t]*::?=")
"""A rule of another notation in a block marked as a grammar: it is reported as an error, not skipped."""
FRAME_LINE = re.compile(r"[ \t]*(?:[*-][ \t]*)?Frames?[ \t]+\d+[^:\n]{0,12}:", re.IGNORECASE)
LIST_SENTENCE = re.compile(
    r".*\b(?:An?|The|the)\s+(?:[*_`]{0,3}(?P<command>[A-Za-z][\w-]*?)[*_`]{0,3}\s+)?(?:message|command)\s+"
    r"(?:(?:SHALL|MUST|shall|must)\s+)?consists?\s+of\s+(?:the\s+following|these)\s+(?:\w+\s+)?frames\s*:\s*$"
)
"""The sentence above a list of frames."""
_STEP = r"[A-Z][ \t]*:[ \t]*(?:\\?\*)?[A-Za-z][A-Za-z0-9_-]*"
_DIALOG_ITEM = rf"(?:{_STEP}|Repeat[ \t]*:|\.\.\.|…)"
DIALOG_LINE = re.compile(rf"[ \t]*{_DIALOG_ITEM}(?:[ \t]{{2,}}{_DIALOG_ITEM})*[ \t]*$")
DIALOG_STEP = re.compile(_STEP)
_STRONG = re.compile(
    r"%[xdb][0-9A-F]|\b0x[0-9A-F]{2}\.|(?<![A-Z-])(?:OCTET|ALPHA|DIGIT|VCHAR|HEXDIG|CRLF|WSP)\b"
    r"|(?:^|[\s(\[/|])\d{0,9}\*\d{0,9}[A-Z(\[]"
    r"|(?:^|[\s(\[/|*])[A-Z]:[A-Z][\w-]+(?=[\s)\]]|$)",
    re.IGNORECASE,
)
_ALTERNATIVES = re.compile(r'(?:\b[\w-]{1,64}|"[^"]{0,64}")\s{0,9}[/|]\s{0,9}[\w"]')
LONGEST_DRAWING = 500
"""Maximum lines of a frame table or a dialog; longer blocks are data that look like one."""
_SAMPLE = 40
"""Lines that are parsed to test whether a block is a grammar; the limit keeps the test fast."""


def tell_kind(lines: Sequence[str], language: str, *, marked: bool) -> Kind:
    """Return the kind of `lines`.

    Args:
        language: the language that the markup names.
        marked: whether there is markup.
    """
    written = [line for line in lines if line.strip()]
    if not written:
        return "other"
    if language in GRAMMAR_LANGUAGES:
        return "grammar" if any(RULE_START.match(line) or _BNF.match(line) for line in written) else "other"
    if language not in _NO_LANGUAGE:
        return "other"
    if len(written) <= LONGEST_DRAWING:
        if is_table(written):
            return "frame table"
        if is_dialog(written):
            return "dialog"
    return "grammar" if _is_grammar(written, marked=marked) else "other"


def is_table(lines: Sequence[str]) -> bool:
    """Whether the lines have at least two frames, or one below an underlined title."""
    frames = sum(1 for line in lines if FRAME_LINE.match(line))
    return frames >= 2 or (
        frames == 1 and len(lines) == 3 and not lines[1].strip().strip("-=") and "command" in lines[0]
    )


def is_dialog(lines: Sequence[str]) -> bool:
    """Whether every line is a step of a dialog (``C: OPEN``), ``Repeat:`` or ``...``, two steps at least."""
    lines = [line for line in without_titles(lines) if line.strip()]
    if not all(DIALOG_LINE.match(line) for line in lines):
        return False
    return sum(1 for line in lines if DIALOG_STEP.search(line)) >= 2 or any(
        "Repeat" in line for line in lines
    )


def is_strange(line: str, margin: int) -> bool:
    """Whether a line is not part of a grammar whose rules begin at column `margin` (from 0)."""
    shown = line.expandtabs(8)
    body = shown.lstrip()
    if not body or body[0] in ";/|" or RULE_START.match(line):
        return False
    return len(shown) - len(body) <= margin


def margin_of(line: str) -> int:
    """Return the column, from 0, at which the text of a line begins; tab stops are every 8 columns."""
    shown = line.expandtabs(8)
    return len(shown) - len(shown.lstrip())


def is_rules_only(lines: Sequence[str]) -> bool:
    """Whether the lines are only rules and comments, and some rule can only be ABNF."""
    written = [line for line in lines if line.strip()]
    starts = [line for line in written if RULE_START.match(line)]
    if not starts:
        return False
    margin = min(map(margin_of, starts))
    if any(is_strange(line, margin) for line in written):
        return False
    return any(_STRONG.search(line.partition(";")[0].partition("=")[2]) for line in starts)


def _is_grammar(lines: Sequence[str], *, marked: bool) -> bool:
    starts = [line for line in lines if RULE_START.match(line)]
    if not starts:
        return False
    margin = min(margin_of(line) for line in starts)
    strange = sum(1 for line in lines if is_strange(line, margin))
    if strange * 2 > len(starts):
        return False
    code = [line.partition(";")[0] for line in lines]
    bodies = [line.partition("=")[2] if RULE_START.match(line) else line for line in code]
    if any(_STRONG.search(body) for body in bodies):
        rules, faults = _try(lines)
        return faults * 2 <= rules
    if marked and any(_ALTERNATIVES.search(body) for body in bodies):
        rules, faults = _try(lines)
        return rules > 0 and faults == 0
    return False


def _try(lines: Sequence[str]) -> tuple[int, int]:
    """Return the number of rules and of faults in the first lines."""
    numbers = [n for n, line in enumerate(lines) if RULE_START.match(line)]
    end = numbers[_SAMPLE] if len(numbers) > _SAMPLE else len(lines)
    text = "\n".join(line[:1000] for line in lines[: min(end, 10 * _SAMPLE)]) + "\n"
    diagnostics = Diagnostics()
    readable = re.sub("[\udc80-\udcff]", "?", text)
    parse_grammar(Source("", readable), dialect="zeromq", diagnostics=diagnostics)
    return min(len(numbers), _SAMPLE), len(diagnostics.errors)
