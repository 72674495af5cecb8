"""Title, edition, published name and headings of a document.

Sources are a YAML head (``title:``, ``name:``, ``status:``), a list of such pairs (``* State:
draft``, an RST table), and the first headings. The version is the first one that the beginning of
the document names.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from specwire.generator.documents.blocks import Block

_PAIR = re.compile(
    r"[ \t]*(?:[*•·-][ \t]*)*(?::|\*\*)?(?P<key>title|name|status|state|version|edition)(?:\*\*)?[ \t]*:[ "
    r"\t]*(?P<value>\S.*)$",
    re.IGNORECASE,
)
_RST_KEY = re.compile(r"[ \t]*\*[ \t]*-[ \t]*\*\*(?P<key>\w+)\*\*[ \t]*$")
_RST_VALUE = re.compile(r"[ \t]*-[ \t]+(?P<value>\S.*)$")
_HEADING = re.compile(r"(?:#{1,6}|={1,6}|\+{1,6})[ \t]+(?P<text>\S.*?)[ \t]*[#=+]*$")
_BOLD = re.compile(r"(?:\*\*|__)(?P<text>[A-Z0-9][^*_]{1,60})(?:\*\*|__):?[ \t]*$")
_UNDERLINE = re.compile(r"([=#*~^\"'+.-])\1{2,}[ \t]*$")
_NUMBERED = re.compile(r"(?:^|[/:])(?P<number>\d+)/(?P<name>[A-Za-z][\w-]*)")
_NUMBER = r"(?P<number>\d+(?:\.\d+)*)\b"
_SECTIONS = frozenset(
    {"preamble", "license", "abstract", "introduction", "goals", "language", "contents", "implementation"}
)
_BEGINNING = 60
"""Lines in which a document introduces itself."""


@dataclass(frozen=True, slots=True)
class Facts:
    """Title and edition of a document; `published_as` is the name under which it is published, if any."""

    title: str
    edition: str
    published_as: str | None


def read_facts(lines: list[str], blocks: tuple[Block, ...], protocol: str) -> Facts:
    """Return the facts stated in the first lines; `protocol` replaces a missing title."""
    head = lines[: min(_BEGINNING, blocks[0].first_line - 1 if blocks else _BEGINNING)]
    stated = _stated(head)
    headings = find_headings(head, ())
    heading = next((text for _, text in headings), "") or _numbered_line(head)
    name = stated.get("name", "")
    is_address = bool(re.search(r"[/:]", name)) and " " not in name
    numbers = [
        found for text in (stated.get("title", ""), heading, name) if (found := _NUMBERED.search(text))
    ]
    short = numbers[0]["name"] if numbers else _short(heading, protocol)
    version = stated.get("version") or _version(_introduction(head, headings), short)
    state = stated.get("state") or stated.get("status") or ""
    edition = f"{short} v{version}" if version else numbers[0]["number"] + "/" + short if numbers else short
    return Facts(
        title=clean(_title(name if not is_address else "", stated.get("title", ""), heading, head))
        or protocol,
        edition=clean(f"{edition}, {state.lower()}" if state else edition),
        published_as=clean(name) if is_address else None,
    )


def _title(name: str, title: str, heading: str, head: list[str]) -> str:
    for text in (name, title, heading):
        plain = re.sub(r"^\d+/(?:\w+[ \t]+[-\u2013\u2014][ \t]+)?", "", text).strip()
        if plain and not _is_section(plain):
            return plain
    return _first_named(head)


def find_headings(lines: list[str], blocks: tuple[Block, ...]) -> list[tuple[int, str]]:
    """Return the headings with their line numbers, from 1; lines of blocks are skipped."""
    covered = {n for block in blocks for n in range(block.first_line, block.last_line + 1)}
    found: list[tuple[int, str]] = []
    for number, line in enumerate(lines, start=1):
        if number in covered:
            continue
        if marked := _HEADING.match(line) or _BOLD.match(line):
            found.append((number, marked["text"]))
        elif number < len(lines) and number + 1 not in covered and _is_underlined(line, lines[number]):
            found.append((number, line.strip()))
    return found


def _is_underlined(line: str, below: str) -> bool:
    text = line.strip()
    if not text or text[0] in ":." or not _UNDERLINE.match(below):
        return False
    return not _UNDERLINE.match(line) and len(below.strip()) >= len(text) - 2


def _stated(lines: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for number, line in enumerate(lines):
        if pair := _PAIR.match(line):
            found.setdefault(pair["key"].lower(), pair["value"].strip())
        elif key := _RST_KEY.match(line):
            value = _RST_VALUE.match(lines[number + 1]) if number + 1 < len(lines) else None
            found.setdefault(key["key"].lower(), value["value"].strip() if value else "")
    return found


def _numbered_line(lines: list[str]) -> str:
    """Return a heading without markup that is a published number and name, ``3/CMB1 - …``."""
    return next((line.strip() for line in lines if re.match(r"\d+/[A-Z]", line) and len(line) < 100), "")


def _first_named(lines: list[str]) -> str:
    """Return the subject of the first sentence: ``The File Message Queuing Protocol governs …``."""
    for line in lines:
        about = re.match(r"The ((?:[A-Z0-9][\w-]*[ \t]+){1,6}?(?:Protocol|Specification))\b", line.strip())
        if about:
            return about[1]
        if about := re.search(r"\bdefines (?:the )+((?:\w+[ \t]+){1,4}?Protocol)\b", line, re.IGNORECASE):
            return about[1]
    return ""


def _is_section(title: str) -> bool:
    return title.lower() in _SECTIONS


def _introduction(head: list[str], headings: list[tuple[int, str]]) -> str:
    """Return the text up to the first section, below the title if that is a heading."""
    sections = [number for number, text in headings[:2] if number > 8 or _is_section(text)] or [
        number for number, _ in headings[1:2]
    ]
    return "\n".join(head[: sections[0] - 1 if sections else None])


def _version(introduction: str, short: str) -> str | None:
    """Return the version of the protocol; the text may name versions of other protocols, too."""
    named = re.escape(short)
    for pattern in (
        rf"\bversion {_NUMBER} of (?:the )?{named}\b",
        rf"\b{named}(?: protocol)?[ /-](?:version |v)?{_NUMBER}",
        rf"\bthis (?:document |specification )?(?:is|describes|defines) (?:version |v){_NUMBER}",
        rf"\bversion {_NUMBER}",
    ):
        if found := re.search(pattern, introduction, re.IGNORECASE):
            return found["number"]
    return None


def _short(heading: str, protocol: str) -> str:
    """Return the short name of a protocol that its document does not number."""
    if not heading or _is_section(heading):
        return protocol.upper()
    return re.sub(r"[ \t]+(?:protocol|specification)$", "", heading, flags=re.IGNORECASE)


def clean(text: str) -> str:
    """Return the text as one line without quotes, backslashes and markup, for a profile."""
    plain = re.sub(r'[\x00-\x1f\x7f"\\*`]|[\ud800-\udfff]', " ", text)
    return re.sub(r"\s+", " ", plain).strip()[:120]
