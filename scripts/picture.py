"""Draw docs/images/pipeline.svg: from a published document to tables on Spark, as the code is built (`structure`).

``python scripts/picture.py`` writes it; ``--check`` ends with status 1 where it is not what would be written.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from html import escape

from structure import ROOT, Structure, levels, read_structure

PICTURE = ROOT / "docs/images/pipeline.svg"

WIDTH, MARGIN = 480, 12
"""Of the picture and of its edge, in pixels: narrow enough that a telephone shows the text at a readable size."""
HEAD, LINE, ARROW, PADDING = 26, 22, 34, 10
"""Heights of a heading, of a line of words and of an arrow, and the space between a box and its content."""
WORDS_A_LINE = 3
PART_WIDTH, PART_HEIGHT = 104, 28
PART_ACROSS, PART_STEP = 111, 38
"""From one part to the next, across and down."""
PARTS_A_ROW = 4

COLOURS = """\
:root { --ink: #1b1f24; --soft: #57606a; --paper: #fff; --tint: #f6f8fa; --line: #afb8c1; --value: #ddf4ff;
  --link: #0969da }
@media (prefers-color-scheme: dark) {
:root { --ink: #e6edf3; --soft: #9198a1; --paper: #0d1117; --tint: #161b22; --line: #3d444d; --value: #0c2d6b;
  --link: #4493f8 }
}"""
"""The names are those of docs/stylesheets/site.css: inside a page of the site, its colours are used instead."""

STYLE = """\
.pipeline { max-width: 100% }
.pipeline .page { fill: var(--paper) }
.pipeline text { font: 15px system-ui, sans-serif; fill: var(--ink) }
.pipeline .head { font-weight: 600; font-size: 17px }
.pipeline .note { font-size: 14px; fill: var(--soft) }
.pipeline .name { font-size: 14px }
.pipeline .box { fill: var(--tint); stroke: var(--line) }
.pipeline .part { fill: var(--value); stroke: var(--link) }
.pipeline .flow { fill: none; stroke: var(--link); stroke-width: 2.5; marker-end: url(#pipeline-tip) }
.pipeline .tip { fill: var(--link) }"""

TIP = """\
<defs><marker id="pipeline-tip" viewBox="0 0 8 8" refX="6" refY="4" markerWidth="6" markerHeight="6" orient="auto">
<path class="tip" d="M0 0 8 4 0 8z"/></marker></defs>"""


def draw(structure: Structure) -> str:
    """Return the picture as SVG: the four folders from top to bottom, an arrow from each to the next."""
    lists = (
        ("grammars/", "rules and a profile for each protocol", structure.protocols),
        ("generator/", "steps, in this order", structure.steps),
        ("generated/", "a package for each protocol, of these parts", structure.targets),
    )
    shapes: list[str] = []
    y = MARGIN
    for head, note, words in lists:
        below = y + HEAD + -(-len(words) // WORDS_A_LINE) * LINE + PADDING + 4
        shapes += [*_heading(y, head, note), *_list(y + HEAD, below, words), _arrow(below)]
        y = below + ARROW
    below = y + HEAD + 2 * PADDING + PART_HEIGHT + len(_rows(structure)) * PART_STEP
    shapes += [*_heading(y, "runtime/", "built from the bottom up"), *_runtime(y + HEAD, below, structure)]
    height = below + MARGIN
    size = f'viewBox="0 0 {WIDTH} {height}" width="{WIDTH}"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" class="pipeline" role="img" {size}>',
            "<title>From a published document to tables on Spark</title>",
            f'<style class="colours">\n{COLOURS}\n</style>',
            f"<style>\n{STYLE}\n</style>",
            TIP,
            '<rect class="page" width="100%" height="100%"/>',
            *shapes,
            "</svg>\n",
        ]
    )


def _heading(y: int, head: str, note: str) -> Iterator[str]:
    yield _text(MARGIN, y + 17, head, "head")
    yield _text(MARGIN + 110, y + 17, note, "note")


def _list(top: int, below: int, words: Sequence[str]) -> Iterator[str]:
    """Draw a box of words, which are read row by row."""
    yield _box(MARGIN, top, WIDTH - 2 * MARGIN, below - top, "box")
    for number, word in enumerate(words):
        row, column = divmod(number, WORDS_A_LINE)
        x = MARGIN + PADDING + column * (WIDTH - 2 * MARGIN) // WORDS_A_LINE
        yield _text(x, top + PADDING + 14 + row * LINE, word)


def _arrow(y: int) -> str:
    """Draw the arrow from a box to the heading of the next one."""
    return f'<path class="flow" d="M{WIDTH // 2} {y + 4}V{y + ARROW - 4}"/>'


def _runtime(top: int, below: int, structure: Structure) -> Iterator[str]:
    """Draw the parts of the runtime, each above what it needs, and the command line over all of them."""
    inner = WIDTH - 2 * MARGIN
    yield _box(MARGIN, top, inner, below - top, "box")
    yield _box(MARGIN + PADDING, top + PADDING, inner - 2 * PADDING, PART_HEIGHT, "part")
    yield _text(WIDTH // 2, top + PADDING + 19, "cli: the program specwire", "name", anchor="middle")
    for part, (x, y) in _places(top + PADDING + PART_STEP, structure):
        yield _box(x, y, PART_WIDTH, PART_HEIGHT, "part")
        yield _text(x + PART_WIDTH // 2, y + 19, part, "name", anchor="middle")


def _rows(structure: Structure) -> list[list[str]]:
    """Return the parts row by row, the highest level first; a level that is too wide has several rows."""
    height_of = levels(structure.needs)
    rows = []
    for level in range(max(height_of.values()), -1, -1):
        parts = sorted(part for part, its in height_of.items() if its == level)
        rows += [parts[start : start + PARTS_A_ROW] for start in range(0, len(parts), PARTS_A_ROW)]
    return rows


def _places(top: int, structure: Structure) -> Iterator[tuple[str, tuple[int, int]]]:
    """Yield the place of each part; rows are centred."""
    for row, parts in enumerate(_rows(structure)):
        for number, part in enumerate(parts):
            middle = WIDTH // 2 + (2 * number + 1 - len(parts)) * PART_ACROSS // 2
            yield part, (middle - PART_WIDTH // 2, top + row * PART_STEP)


def _box(x: int, y: int, width: int, height: int, kind: str) -> str:
    return f'<rect class="{kind}" x="{x}" y="{y}" width="{width}" height="{height}" rx="5"/>'


def _text(x: int, y: int, words: str, kind: str = "", *, anchor: str = "") -> str:
    attributes: Iterable[tuple[str, str]] = (("class", kind), ("text-anchor", anchor))
    given = "".join(f' {name}="{value}"' for name, value in attributes if value)
    return f'<text{given} x="{x}" y="{y}">{escape(words)}</text>'


def main(arguments: list[str]) -> int:
    """Write or compare the picture; return the exit status."""
    drawn = draw(read_structure())
    if "--check" in arguments:
        same = PICTURE.is_file() and PICTURE.read_text(encoding="utf-8") == drawn
        if not same:
            print(f"{PICTURE.relative_to(ROOT)} is not what the code is: python scripts/picture.py")
        return 0 if same else 1
    PICTURE.write_text(drawn, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
