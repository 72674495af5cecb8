"""Search for grammars, frame tables and dialogs without markup: runs of lines with a recognisable form.

A grammar in plain text begins with a rule. Rules in the same column, lines indented deeper,
comments and empty lines continue it (RFC 5234 section 2.2); any other line ends it. This also
excludes text directly below the last rule, such as a footnote. Indented text below the last rule is
excluded if the rule cannot be parsed with it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from specwire.generator.abnf.parser import parse_grammar
from specwire.generator.diagnostics import Diagnostics, Source
from specwire.generator.documents.kinds import (
    DIALOG_LINE,
    FRAME_LINE,
    LIST_SENTENCE,
    LONGEST_DRAWING,
    RULE_START,
    Kind,
    is_dialog,
    margin_of,
    tell_kind,
)
from specwire.generator.documents.lines import PAGE_BREAK

Run = tuple[Kind, int, int]
"""The kind of the lines, the first line (from 0), and the last line (exclusive)."""

_ITEM = re.compile(r"[ \t]*[*+-][ \t]+\S")
_RULES_AWAY = 12
"""Maximum number of lines removed from the end of a run until its last rule can be parsed."""


def find_runs(lines: Sequence[str], first: int, last: int, language: str = "") -> Iterator[Run]:
    """Yield the runs in the lines from `first` up to `last`, exclusive, in order."""
    at = done = first
    while at < last:
        run = _run_at(lines, at, done, last, language)
        if run is None:
            at += 1
        else:
            kind, _, end = run
            if kind != "other":
                yield run
                done = end
            at = max(end, at + 1)


def _run_at(lines: Sequence[str], at: int, done: int, last: int, language: str) -> Run | None:
    line = lines[at]
    if FRAME_LINE.match(line):
        return _table(lines, at, done, last)
    if RULE_START.match(line):
        start, end = _with_comments(lines, at, done), _grammar_end(lines, at, last)
        read = _without_prose(lines, start, end)
        kind = tell_kind(lines[start:read], language, marked=False)
        return ("other", start, end) if kind == "other" else (kind, start, read)
    if DIALOG_LINE.match(line):
        return _dialog(lines, at, last)
    if line.rstrip().endswith(":") and LIST_SENTENCE.match(line):
        return _list(lines, at + 1, last)
    return None


def _grammar_end(lines: Sequence[str], at: int, last: int) -> int:
    """Return the line after the last one that can be part of the grammar beginning in line `at`."""
    margin = margin_of(lines[at])
    end, gap = at + 1, False
    for number in range(at + 1, last):
        line = lines[number]
        body = line.lstrip()
        if line == PAGE_BREAK:
            continue
        if not body:
            gap = True
        elif RULE_START.match(line) and margin_of(line) == margin:
            end, gap = number + 1, False
        elif body[0] == ";":
            # Comments belong to what follows them, but for those on a rule's own continuation lines.
            end = number + 1 if not gap and margin_of(line) > margin else end
        elif body[0] in "/|" or (not gap and margin_of(line) > margin):
            end, gap = number + 1, False
        else:
            break
    return end


def _with_comments(lines: Sequence[str], at: int, done: int) -> int:
    """Return the first of the comment lines directly above line `at`."""
    while at > done and lines[at - 1].lstrip().startswith(";"):
        at -= 1
    return at


def _without_prose(lines: Sequence[str], start: int, end: int) -> int:
    """Return the end of the grammar without indented prose after its last rule."""
    rule = next((n for n in range(end - 1, start - 1, -1) if RULE_START.match(lines[n])), start)
    if end - rule > 10 * _RULES_AWAY:
        return end
    for last in range(end, max(rule, end - _RULES_AWAY), -1):
        if _reads(lines[rule:last]):
            return last
    return end


def _reads(lines: Sequence[str]) -> bool:
    diagnostics = Diagnostics()
    text = "\n".join(lines) + "\n"
    parse_grammar(Source("", text), dialect="zeromq", diagnostics=diagnostics)
    return not diagnostics.errors


def _table(lines: Sequence[str], at: int, done: int, last: int) -> Run:
    """Return a frame table without markup: its lines, with the dashes and the title above them."""
    start, end = at, at + 1
    while end < last and (FRAME_LINE.match(lines[end]) or not lines[end].strip()):
        end += 1
    while not lines[end - 1].strip():
        end -= 1
    if start - 2 >= done and lines[start - 1].strip() and not lines[start - 1].strip().strip("-="):
        start -= 2
    found = sum(1 for line in lines[at:end] if line.strip())
    least = 1 if _is_announced(lines, start, done) else 2
    return ("frame table" if least <= found <= LONGEST_DRAWING else "other"), start, end


def _is_announced(lines: Sequence[str], at: int, done: int) -> bool:
    """Whether the prose directly above announces frames: ``with 1 frame, as follows:``."""
    above = next((line.strip() for line in reversed(lines[max(done, at - 3) : at]) if line.strip()), "")
    return bool(re.search(r"\bframes?\b[^:]*:$", above))


def _list(lines: Sequence[str], at: int, last: int) -> Run | None:
    """Return a list of frames in words below its sentence, with at least two items."""
    while at < last and not lines[at].strip():
        at += 1
    end, items = at, 0
    while end < last and (
        _ITEM.match(lines[end]) or (items and lines[end][:1] in " \t" and lines[end].strip())
    ):
        items += bool(_ITEM.match(lines[end]))
        end += 1
    return ("frame list", at, end) if items >= 2 and end - at <= LONGEST_DRAWING else None


def _dialog(lines: Sequence[str], at: int, last: int) -> Run:
    """Return a dialog without markup; with fewer than two senders it is prose."""
    end = at + 1
    while end < last and (DIALOG_LINE.match(lines[end]) or not lines[end].strip()):
        end += 1
    while not lines[end - 1].strip():
        end -= 1
    written = [line for line in lines[at:end] if line.strip()]
    if len(written) > LONGEST_DRAWING:
        return "other", at, end
    senders = {line.strip()[0] for line in written if line.strip()[1:2] == ":"}
    return ("dialog" if is_dialog(written) and len(senders) > 1 else "other"), at, end
