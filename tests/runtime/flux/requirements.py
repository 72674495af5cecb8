"""The sentences of a specification that ask for something, found by the words of RFC 2119 in them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

WORDS = re.compile(r"\b(?:SHALL|MUST|SHOULD|REQUIRED|RECOMMENDED)\b")
UNDERLINE = re.compile(r"([#*=~-])\1{2,}")
ITEM = re.compile(r"[-•] |\d\. ")
SENTENCE = re.compile(r"(?<=\.)\s+(?=[A-Z])")
ABOUT_WORDS = 'The key words "MUST"'
"""How the sentence begins that introduces the words themselves."""


def headed(lines: list[str], at: int) -> bool:
    """Tell whether the line at `at` is a heading: underlined, or short, alone and without an end."""
    line = lines[at].strip()
    if not line or UNDERLINE.fullmatch(line):
        return False
    below = lines[at + 1].strip() if at + 1 < len(lines) else ""
    if UNDERLINE.fullmatch(below):
        return True
    alone = not below and (at == 0 or not lines[at - 1].strip())
    return alone and line[0].isupper() and len(line) < 40 and line[-1] not in ".:,;)"


def paragraphs(text: str) -> Iterator[tuple[str, str]]:
    """Yield each paragraph or item with the heading that it stands under."""
    lines = text.splitlines()
    heading, gathered = "", list[str]()
    for at, line in enumerate(lines):
        starts = headed(lines, at)
        if gathered and (starts or not line.strip() or ITEM.match(line.strip())):
            yield heading, " ".join(gathered)
            gathered = []
        if starts:
            heading = line.strip()
        elif line.strip() and not UNDERLINE.fullmatch(line.strip()):
            gathered.append(line.strip())
    if gathered:
        yield heading, " ".join(gathered)


def requirements(specification: Path) -> Iterator[tuple[str, str]]:
    """Yield each sentence that asks for something, with its heading."""
    for heading, paragraph in paragraphs(specification.read_text(encoding="utf-8")):
        for sentence in SENTENCE.split(paragraph):
            if WORDS.search(sentence) and not sentence.startswith(ABOUT_WORDS):
                yield heading, sentence


def counts(specification: Path) -> Counter[str]:
    """Return how many such sentences stand under each heading."""
    return Counter(heading for heading, _ in requirements(specification))
