"""Normalised lines of a document, from which blocks are cut.

Page headers and footers are marked, rule names with a space (``public key =``, ``S: done =``) are
joined, and typographic quotes and dashes in rules become those of ABNF. In marked blocks, comments
that begin with ``#`` or ``//`` begin with ``;`` instead.

Lines and columns are preserved, so that findings point into the document.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

LONGEST_LINE = 5000
"""Characters; a longer line is data that somebody pasted, and read as empty."""
PAGE_BREAK = " \t \t "
"""Blanks in place of a page header or footer; a rule continues after it."""

_MOST_NAMES = 200
"""Maximum number of names with a space; more of them are prose or data."""

_TYPOGRAPHY = str.maketrans(
    dict.fromkeys("\u201c\u201d\u201e\u201f\u00ab\u00bb", '"')
    | dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2212", "-")
    | {"\u2018": "'", "\u2019": "'"}
)
_MARKED_COMMENT = re.compile(r"([ \t]*)(#+|//+|--+)(?=[ \t]|$)")

_FOOTER = re.compile(r".*\[Page[ \t]+[0-9ivxlc]+\][ \t]*$", re.IGNORECASE)
_HEADER = re.compile(r"(?:RFC[ \t]*\d+|Internet[- ]Draft)\b.*\b\d{4}[ \t]*$", re.IGNORECASE)
_SPACED = re.compile(r"[ \t]*((?:[A-Za-z]:)?[A-Za-z][\w-]*) ([A-Za-z][\w-]*)[ \t]{2,}=(?![=/])")
_AFTER_ROLE = re.compile(
    r"^(?P<role>[ \t]*[A-Za-z]:)(?P<blanks>[ ]+)(?P<name>[A-Za-z][\w-]*)(?=[ \t]*=(?!=))"
)
_WITH_ROLE = re.compile(r"[ \t]*[A-Za-z]:[A-Za-z][\w-]*[ \t]*=(?!=)")
_RULE = re.compile(r"[ \t]*(?:[A-Za-z]:)?[A-Za-z][\w-]*[ \t]*=(?!=)")


def read_lines(text: str) -> list[str]:
    """Return the lines of a document, without line ends."""
    whole = [line.removesuffix("\r").replace("\u00a0", " ") for line in text.split("\n")]
    lines = [line if len(line) <= LONGEST_LINE else "" for line in whole]
    return _join_names(_join_roles(_mark_pages(lines)))


def joined_name(line: str) -> str:
    """Return the name with spaces in it that a line of the document defines; empty if there is none."""
    defined = _AFTER_ROLE.match(line) or _SPACED.match(line)
    return defined.group().partition("=")[0].strip() if defined else ""


def as_code(line: str) -> str:
    """Return the line with ABNF's quotes and dashes up to its comment; columns are preserved."""
    if line.isascii():
        return line
    code, mark, comment = line.partition(";")
    return code.translate(_TYPOGRAPHY) + mark + comment


def as_marked_code(line: str) -> str:
    """Return a line as `as_code` does, with comments of other languages as ABNF comments."""
    other = _MARKED_COMMENT.match(line)
    if other is None:
        return as_code(line)
    return other[1] + ";" + " " * (len(other[2]) - 1) + line[other.end() :]


def _mark_pages(lines: list[str]) -> list[str]:
    """Mark page footers, page breaks, page headers, and the empty lines around them."""
    marked = list(lines)
    for number, line in enumerate(lines):
        if marked[number] == PAGE_BREAK or ("\f" not in line and not _FOOTER.match(line)):
            continue
        if line.strip() and not _FOOTER.match(line) and not _HEADER.match(line.strip()):
            marked[number] = line.replace("\f", " ")
            continue
        first, last = number, number + 1
        while first and not lines[first - 1].strip() and marked[first - 1] != PAGE_BREAK:
            first -= 1
        while last < len(lines) and not lines[last].strip():
            last += 1
        if last < len(lines) and _HEADER.match(lines[last].strip()):
            last += 1
            while last < len(lines) and not lines[last].strip():
                last += 1
        marked[first:last] = [PAGE_BREAK] * (last - first)
    return marked


def _join_roles(lines: list[str]) -> list[str]:
    """Replace ``S: done =`` by ``S:done  =``, if other rules have a role; the other columns are preserved."""
    if not any(map(_WITH_ROLE.match, lines)):
        return lines
    return [_AFTER_ROLE.sub(r"\g<role>\g<name>\g<blanks>", line, count=1) for line in lines]


def _join_names(lines: list[str]) -> list[str]:
    """Replace ``public key`` by ``public-key`` in a definition and its uses; columns are preserved."""
    names: dict[str, str] = {}
    for number, line in enumerate(lines):
        if (spaced := _SPACED.match(line)) and _has_rule_beside(lines, number):
            names[f"{spaced[1]} {spaced[2]}"] = f"{spaced[1]}-{spaced[2]}"
    if not 0 < len(names) <= _MOST_NAMES:
        return lines
    spelled = re.compile("|".join(rf"(?<![\w-]){re.escape(name)}(?![\w-])" for name in names))
    return [_joined(line, spelled) for line in lines]


def _joined(line: str, spelled: re.Pattern[str]) -> str:
    code, mark, comment = line.partition(";")
    if not (_RULE.match(line) or _SPACED.match(line) or re.match(r"[ \t]+[^;]*$", code)):
        return line
    return spelled.sub(lambda name: name.group().replace(" ", "-"), code) + mark + comment


def _has_rule_beside(lines: Sequence[str], number: int) -> bool:
    beside = [*lines[max(number - 1, 0) : number], *lines[number + 1 : number + 2]]
    return any(_RULE.match(line) or _SPACED.match(line) for line in beside)
