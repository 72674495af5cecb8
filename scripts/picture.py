"""Draw docs/images/pipeline.svg: from a published document to tables on Spark, as the code is built (`structure`).

``python scripts/picture.py`` writes it; ``--check`` ends with status 1 where it is not what would be written.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise

from structure import ROOT, Structure, direct_needs, levels, read_structure

PICTURE = ROOT / "docs/images/pipeline.svg"

TOP, LINE, GAP, MARGIN = 62, 19, 26, 14
"""Where boxes begin, the height of a line of text, and the space between and around, all in pixels."""
WIDTHS = (112, 150, 112)
"""Of the columns grammars, generator and generated; that of runtime is as wide as its longest row."""
PART_WIDTH, PART_HEIGHT = 97, 26

STYLE = """\
.page { fill: #fff }
text { font: 13px system-ui, sans-serif; fill: #1b1f24 }
.head { font-weight: 600; font-size: 15px }
.note { font-size: 12px; fill: #57606a }
.box { fill: #f6f8fa; stroke: #afb8c1 }
.part { fill: #ddf4ff; stroke: #54aeff }
.edge { fill: none; stroke: #8c959f }
.flow { fill: none; stroke: #0969da; stroke-width: 2.5; marker-end: url(#tip) }
.tip { fill: #0969da }
@media (prefers-color-scheme: dark) {
.page { fill: #0d1117 }
text { fill: #e6edf3 } .note { fill: #9198a1 } .box { fill: #161b22; stroke: #3d444d }
.part { fill: #0c2d6b; stroke: #388bfd } .edge { stroke: #768390 } .flow { stroke: #4493f8 } .tip { fill: #4493f8 }
}"""


TIP = """\
<defs><marker id="tip" viewBox="0 0 8 8" refX="6" refY="4" markerWidth="6" markerHeight="6" orient="auto">
<path class="tip" d="M0 0 8 4 0 8z"/></marker></defs>"""


@dataclass(frozen=True)
class Column:
    """One of the four folders: where it is, what it is called, and what is said below its name."""

    left: int
    width: int
    head: str
    note: str

    @property
    def right(self) -> int:
        """Its right edge."""
        return self.left + self.width


def draw(structure: Structure) -> str:
    """Return the picture as SVG."""
    heads = (
        ("grammars/", "rules, a profile"),
        ("generator/", "one arrow after another"),
        ("generated/", "a package each"),
        ("runtime/", "what stands on the packages; lines lead to what a part needs"),
    )
    columns, left = [], MARGIN
    for width, (head, note) in zip((*WIDTHS, _width_of_runtime(structure)), heads, strict=True):
        columns.append(Column(left, width, head, note))
        left += width + GAP + 6
    rows = max(len(structure.protocols), len(structure.steps), len(structure.targets))
    height = rows * LINE + 20
    shapes = [
        *_lists(columns, structure, height),
        *_runtime(columns[3], structure, height),
        *_flow(columns, height),
    ]
    width, whole = columns[-1].right + MARGIN, TOP + height + MARGIN
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {whole}" width="{width}" role="img">',
            "<title>From a published document to tables on Spark</title>",
            f"<style>\n{STYLE}\n</style>",
            TIP,
            '<rect class="page" width="100%" height="100%"/>',
            *shapes,
            "</svg>\n",
        ]
    )


def _width_of_runtime(structure: Structure) -> int:
    height_of = levels(structure.needs)
    longest = max(sum(level == other for other in height_of.values()) for level in height_of.values())
    return longest * (PART_WIDTH + 9) + 10


def _lists(columns: Sequence[Column], structure: Structure, height: int) -> Iterator[str]:
    """Draw the three columns that are lists of words, and all heads."""
    for column in columns:
        yield _text(column.left, 26, column.head, "head")
        yield _text(column.left, 46, column.note, "note")
    for column, words in zip(
        columns, (structure.protocols, structure.steps, structure.targets), strict=False
    ):
        yield _box(column.left, TOP, column.width, height, "box")
        for row, word in enumerate(words):
            yield _text(column.left + 10, TOP + 24 + row * LINE, word)


def _runtime(column: Column, structure: Structure, height: int) -> Iterator[str]:
    """Draw the parts of the runtime, each above what it needs, and the command line over all of them."""
    yield _box(column.left, TOP, column.width, height, "box")
    yield _box(column.left + 8, TOP + 8, column.width - 16, PART_HEIGHT, "part")
    yield _text(column.left + 18, TOP + 25, "cli: the program specwire")
    places = dict(_places(column, structure, height))
    for part, need in direct_needs(structure.needs):
        (x, y), (below_x, below_y) = places[part], places[need]
        start, end = (x + PART_WIDTH // 2, y + PART_HEIGHT), (below_x + PART_WIDTH // 2, below_y)
        bend = (end[1] - start[1]) // 2
        yield (
            f'<path class="edge" d="M{start[0]} {start[1]}C{start[0]} {start[1] + bend} '
            f'{end[0]} {end[1] - bend} {end[0]} {end[1]}"/>'
        )
    for part, (x, y) in places.items():
        yield _box(x, y, PART_WIDTH, PART_HEIGHT, "part")
        yield _text(x + PART_WIDTH // 2, y + 17, part, anchor="middle")


def _places(column: Column, structure: Structure, height: int) -> Iterator[tuple[str, tuple[int, int]]]:
    """Yield the place of each part: a row for each level, the parts of a level spread over its width."""
    height_of = levels(structure.needs)
    top, count = TOP + PART_HEIGHT + 26, max(height_of.values()) + 1
    step = (TOP + height - 10 - PART_HEIGHT - top) // max(count - 1, 1)
    for level in range(count):
        parts = sorted(part for part, its in height_of.items() if its == level)
        for number, part in enumerate(parts):
            middle = column.left + column.width * (2 * number + 1) // (2 * len(parts))
            yield part, (middle - PART_WIDTH // 2, top + (count - 1 - level) * step)


def _flow(columns: Sequence[Column], height: int) -> Iterator[str]:
    """Draw the arrows from one column to the next."""
    y = TOP + height // 2
    for near, far in pairwise(columns):
        yield f'<path class="flow" d="M{near.right + 3} {y}H{far.left - 5}"/>'


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
