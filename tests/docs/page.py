"""A page as its tests see it: fenced blocks in their order, each with the notes that stand before it.

Notes are HTML comments on lines of their own, which readers do not see:

    <!-- test: setup COMMAND -->     run before what follows, to make the files that the page speaks of
    <!-- test: needs PROGRAM -->     the rest of the page is left out where this program is missing
    <!-- test: status N -->          the last command of the next block ends with this exit status
    <!-- test: by tests/… -->        that test runs the next block
    <!-- test: skip REASON -->       the next block is not run

``by`` and ``skip`` hold for all blocks that follow where a ``page-`` stands in front of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_NOTE = re.compile(r"^ *<!-- test: (setup|needs|status|by|skip|page-by|page-skip) (.+?) -->$")
_FENCE = re.compile(r"^( *)(```+) *(.*)$")
_PROMPT = "$ "


@dataclass(frozen=True, slots=True)
class Note:
    """A remark for the tests, `kind` being its first word."""

    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block; `language` is the first word of the fence, `title` what ``title="…"`` there says."""

    page: Path
    line: int
    language: str
    title: str
    text: str
    notes: tuple[Note, ...]
    """Those since the block before it, and those for all blocks."""

    def note(self, kind: str) -> str | None:
        """Return the text of the last note of this kind."""
        return next((note.text for note in reversed(self.notes) if note.kind == kind), None)

    @property
    def place(self) -> str:
        """Where it begins, as editors understand it."""
        return f"{self.page.name}:{self.line}"


@dataclass(frozen=True, slots=True)
class Command:
    """What stands behind a prompt, and the lines that the page says it prints."""

    text: str
    output: tuple[str, ...]


def blocks(page: Path) -> Iterator[Block]:
    """Yield the fenced blocks of a page; raises ValueError where one does not end."""
    notes: list[Note] = []
    lasting: list[Note] = []
    lines = iter(enumerate(page.read_text(encoding="utf-8").splitlines(), 1))
    for number, line in lines:
        if (note := _NOTE.match(line)) and note[1].startswith("page-"):
            lasting.append(Note(note[1].removeprefix("page-"), note[2]))
        elif note:
            notes.append(Note(note[1], note[2]))
        elif fence := _FENCE.match(line):
            margin, ticks, about = fence.groups()
            inside = []
            for _, text in lines:
                if text.strip() == ticks:
                    break
                inside.append(text.removeprefix(margin))
            else:
                raise ValueError(f"{page.name}:{number}: the block does not end")
            title = re.search(r'title="([^"]*)"', about)
            yield Block(
                page,
                number,
                about.partition(" ")[0],
                title[1] if title else "",
                "".join(f"{line}\n" for line in inside),
                (*lasting, *notes),
            )
            notes = []


def commands(block: Block) -> Iterator[Command]:
    """Yield the commands of a console block with their output; one may go on in lines below it."""
    text: list[str] = []
    output: list[str] = []
    for line in block.text.splitlines():
        if line.startswith(_PROMPT):
            if text:
                yield Command("\n".join(text), tuple(output))
            text, output = [line.removeprefix(_PROMPT)], []
        elif not text:
            raise ValueError(f"{block.place}: a console block begins with a command")
        elif not output and _goes_on(text):
            text.append(line.removeprefix("> "))
        else:
            output.append(line)
    if text:
        yield Command("\n".join(text), tuple(output))


def _goes_on(lines: list[str]) -> bool:
    """Whether a command is not complete: its last line ends with a backslash, or its here-document is open."""
    opened = re.search(r"<<-?\s*['\"]?(\w+)", lines[0])
    return lines[-1].endswith("\\") or (opened is not None and opened[1] not in lines[1:])
