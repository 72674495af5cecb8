"""Drawing of a frame's octets: a grid as in RFCs, four octets to the row, while sizes are fixed.

After the first value of variable size, offsets depend on the message. Each later field then has its
own row, not to scale, after its length or count. Repeated parts have a border.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from xml.etree.ElementTree import Element

from markupsafe import Markup

from specwire.generator import ir
from specwire.generator.emit.reference.boxes import Bits, Box, Group, Item, fixed_octets, flat, pieces_of
from specwire.generator.emit.reference.drawing import add, add_text, drawing, text_width, written

ROW_OCTETS = 4
BIT = 20.0
LEFT = 44.0
"""Left edge of the grid; the offsets are left of it."""
RULER = 24.0
CELL = 38.0
GAP = 8.0
WIDTH = ROW_OCTETS * 8 * BIT
_DRAWN_ROWS = 4
"""A value of more rows is drawn as one row with its number of octets."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Part of a box inside one row of the grid: offset of its first octet, and number of octets."""

    box: Box
    offset: int
    octets: int
    squeezed: bool = False
    """One row that represents many."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Content of the drawing: pieces of the grid, then rows of variable size, with offsets if known."""

    pieces: tuple[Piece, ...]
    rows: tuple[tuple[int | None, tuple[Item, ...]], ...]


def plan_frame(fields: Sequence[ir.Field]) -> Plan:
    """Return the plan of a frame's drawing."""
    pieces: list[Piece] = []
    rows: list[tuple[int | None, tuple[Item, ...]]] = []
    offset: int | None = 0
    for items in pieces_of(fields):
        size = fixed_octets(items)
        if rows or size is None or offset is None:
            rows.append((offset, items))
            offset = None if size is None or offset is None else offset + size
            continue
        for box in flat(items):
            pieces.extend(_cut(box, offset))
            offset += box.octets or 0
    return Plan(tuple(pieces), tuple(rows))


def draw_frame(fields: Sequence[ir.Field], name: str) -> Markup:
    """Return the drawing of a frame's octets; `name` is its accessible name."""
    if not any(field.type != ir.ConstantType("") for field in fields):
        return _draw(Plan((), ((0, (Box("empty", 0, note="no octets"),)),)), name)
    return _draw(plan_frame(fields), name)


def draw_rows(rows: Sequence[tuple[Item, ...]], name: str) -> Markup:
    """Return a drawing of rows that are not to scale."""
    return _draw(Plan((), tuple((None, row) for row in rows)), name)


def _cut(box: Box, offset: int) -> list[Piece]:
    """Return the pieces of a box of fixed size at `offset`, each at most one row."""
    left = box.octets or 0
    first = min(left, ROW_OCTETS - offset % ROW_OCTETS)
    whole = (left - first) // ROW_OCTETS
    sizes = [first, *[ROW_OCTETS] * whole, (left - first) % ROW_OCTETS]
    if whole > _DRAWN_ROWS:
        sizes = [first, whole * ROW_OCTETS, sizes[-1]]
    pieces: list[Piece] = []
    for size in sizes:
        if size:
            pieces.append(Piece(box, offset, size, squeezed=size > ROW_OCTETS))
            offset += size
    return pieces


def _draw(plan: Plan, name: str) -> Markup:
    rows = [_stretched(items) for _, items in plan.rows]
    width = LEFT + max([WIDTH if plan.pieces else 0.0, *(row.width for row in rows)]) + 2
    top = RULER if plan.pieces else 6.0
    lines = _lines(plan.pieces)
    grid = lines[-1] + 1 if lines else 0
    height = top + grid * CELL + sum(row.height + GAP for row in rows) + 4
    svg = drawing(width, height, name, kind="octets")
    if plan.pieces:
        _draw_ruler(svg, top)
        _draw_grid(svg, plan.pieces, lines, top)
    y = top + grid * CELL + (GAP if grid and rows else 0)
    for row, (offset, _) in zip(rows, plan.rows, strict=True):
        _draw_offset(svg, offset, y + row.height / 2)
        row.draw(svg, LEFT, y)
        y += row.height + GAP
    return written(svg)


def _lines(pieces: Sequence[Piece]) -> list[int]:
    """Return the line of the grid for each piece."""
    lines: list[int] = []
    for before, piece in pairwise((None, *pieces)):
        if before is None:
            lines.append(0)
        else:
            new = piece is not None and (piece.offset % ROW_OCTETS == 0)
            lines.append(lines[-1] + new)
    return lines


def _draw_ruler(svg: Element, top: float) -> None:
    for octet in range(ROW_OCTETS):
        x = LEFT + octet * 8 * BIT
        add(svg, "path", {"class": "tick", "d": f"M{x:g} {top - 6:g}V{top:g}"})
        add_text(svg, x + 4 * BIT, top - 9, f"+{octet}", 8 * BIT, kind="ruler")
        for bit in range(1, 8):
            start = top - (4 if bit == 4 else 2)
            add(svg, "path", {"class": "tick", "d": f"M{x + bit * BIT:g} {start:g}V{top:g}"})


def _draw_grid(svg: Element, pieces: Sequence[Piece], lines: Sequence[int], top: float) -> None:
    boxes: dict[int, list[tuple[Piece, int]]] = {}
    for piece, line in zip(pieces, lines, strict=True):
        boxes.setdefault(id(piece.box), []).append((piece, line))
        if piece.offset % ROW_OCTETS == 0:
            _draw_offset(svg, piece.offset, top + line * CELL + CELL / 2)
    for placed in boxes.values():
        _draw_pieces(svg, [(piece, *_place(piece, line, top)) for piece, line in placed])


def _place(piece: Piece, line: int, top: float) -> tuple[float, float, float]:
    """Return the left and upper edges of a piece, and its width."""
    column = piece.offset % ROW_OCTETS
    width = min(piece.octets, ROW_OCTETS) * 8 * BIT
    return LEFT + column * 8 * BIT, top + line * CELL, width


def _draw_pieces(svg: Element, placed: Sequence[tuple[Piece, float, float, float]]) -> None:
    """Draw one box: its pieces, an outline around them, and its name in a widest piece near the middle."""
    first = placed[0][0]
    octets = sum(piece.octets for piece, *_ in placed)
    data: dict[str, str | float] = {"data-field": first.box.label, "data-offset": first.offset}
    group = add(svg, "g", data | {"data-octets": octets})
    for piece, x, y, width in placed:
        kind = f"fill {first.box.kind}"
        add(group, "rect", {"class": kind, "x": x, "y": y, "width": width, "height": CELL})
        if piece.squeezed:
            add(
                group,
                "path",
                {"class": "squeezed", "d": f"M{x:g} {y + 4:g}h{width:g}m0 {CELL - 8:g}h-{width:g}"},
            )
    add(group, "path", {"class": "outline", "d": _outline([spot for _, *spot in placed])})
    if first.box.bits:
        for piece, x, y, width in placed:
            shown = _some_bits(first.box.bits, 8 * (piece.offset - first.offset), 8 * piece.octets)
            _draw_bits(group, shown, x, y, width)
        return
    widest = max(width for *_, width in placed)
    fitting = [spot for spot in placed if spot[3] == widest]
    _, x, y, width = fitting[len(fitting) // 2]
    add_text(group, x + width / 2, y + CELL / 2 - 2, first.box.label, width - 6, kind="label")
    size = octets_text(first.box.octets) if width > 8 * BIT else f"{first.box.octets}"
    add_text(group, x + width / 2, y + CELL / 2 + 13, size, width - 6, kind="size")


def _some_bits(all: Sequence[Bits], start: int, count: int) -> tuple[Bits, ...]:
    """Return the values in `count` bits of an integer after the first `start`, cut at both ends."""
    found: list[Bits] = []
    at = -start
    for bits in all:
        width = min(at + bits.width, count) - max(at, 0)
        if width > 0:
            found.append(replace(bits, width=width))
        at += bits.width
    return tuple(found)


def _draw_bits(parent: Element, all: Sequence[Bits], x: float, y: float, width: float) -> None:
    """Draw values in the bits of an integer, each as wide as its bits."""
    bit = width / sum(bits.width for bits in all)
    left = x
    for bits in all:
        room = bits.width * bit
        cell: dict[str, str | float] = {"x": left, "y": y, "width": room, "height": CELL}
        add(parent, "rect", {"class": f"box {bits.kind}", **cell})
        add_text(parent, left + room / 2, y + CELL / 2 - 2, bits.label, room - 4, kind="label")
        size = bits_text(bits.width) if room > 8 * BIT else f"{bits.width}"
        add_text(parent, left + room / 2, y + CELL / 2 + 13, size, room - 4, kind="size")
        left += room


def _outline(spots: Sequence[Sequence[float]]) -> str:
    """Return the outline of pieces in consecutive rows, without the lines between them."""
    path = ""
    for before, (x, y, width), after in zip((None, *spots[:-1]), spots, (*spots[1:], None), strict=True):
        path += f"M{x:g} {y:g}v{CELL:g}M{x + width:g} {y:g}v{CELL:g}"
        for other, edge in ((before, y), (after, y + CELL)):
            shared = (x, x) if other is None else (max(x, other[0]), min(x + width, other[0] + other[2]))
            start, end = shared if shared[1] > shared[0] else (x, x)
            path += f"M{x:g} {edge:g}H{start:g}" if start > x else ""
            path += f"M{end:g} {edge:g}H{x + width:g}" if end < x + width else ""
    return path


def _draw_offset(svg: Element, offset: int | None, y: float) -> None:
    text = "" if offset is None else f"{offset}"
    add_text(svg, LEFT - 8, y + 4, text, LEFT, kind="offset")


def octets_text(count: int | None) -> str:
    """Return ``1 octet``, ``8 octets``; empty if the number varies."""
    return "" if count is None else f"{count} octet{'' if count == 1 else 's'}"


def bits_text(count: int) -> str:
    """Return ``1 bit``, ``8 bits``."""
    return f"{count} bit{'' if count == 1 else 's'}"


@dataclass(frozen=True, slots=True)
class _Shape:
    """Box or group with its drawn size."""

    item: Item
    inner: tuple[_Shape, ...]
    width: float
    height: float

    def draw(self, parent: Element, x: float, y: float) -> None:
        """Draw the item with its upper left corner at `x`, `y`."""
        if isinstance(self.item, Box):
            _draw_box(parent, self.item, x, y, self.width, self.height)
            return
        if self.item.caption:
            frame: dict[str, str | float] = {"class": "group", "x": x, "y": y, "rx": 6}
            add(parent, "rect", frame | {"width": self.width, "height": self.height})
            add_text(parent, x + 8, y + 15, self.item.caption, self.width - 14, kind="caption")
        x, y = (x + _PAD, y + _HEAD) if self.item.caption else (x, y)
        for shape in self.inner:
            shape.draw(parent, x, y)
            if self.item.alternatives:
                y += shape.height + GAP
            else:
                x += shape.width


_PAD = 6.0
_HEAD = 22.0


def _stretched(items: Sequence[Item]) -> _Shape:
    """Return a row at least as wide as the grid; variable items are widened."""
    row = _shape(Group("", tuple(items)))
    return _widened(row, max(row.width, WIDTH))


def _shape(item: Item) -> _Shape:
    """Return the item in its smallest size."""
    if isinstance(item, Box):
        size = item.note or octets_text(item.octets)
        if item.bits:
            bit = max((text_width(bits.label) + 12) / bits.width for bits in item.bits)
            return _Shape(item, (), sum(bits.width for bits in item.bits) * min(bit, 2 * BIT), CELL)
        return _Shape(item, (), max(48.0, text_width(item.label) + 18, text_width(size) * 0.92 + 18), CELL)
    inner = tuple(_shape(part) for part in item.items)
    if item.alternatives:
        width = max((shape.width for shape in inner), default=0)
        height = sum(shape.height + GAP for shape in inner) - GAP
    else:
        width = sum(shape.width for shape in inner)
        height = max((shape.height for shape in inner), default=CELL)
    if not item.caption:
        return _Shape(item, inner, width, height)
    return _Shape(item, inner, max(width + 2 * _PAD, text_width(item.caption) + 16), height + _HEAD + _PAD)


def _widened(shape: _Shape, width: float) -> _Shape:
    """Return the shape widened to `width`: variable items are widened, or all equally if there are none."""
    if isinstance(shape.item, Box):
        return replace(shape, width=width)
    room = width - (2 * _PAD if shape.item.caption else 0)
    if shape.item.alternatives:
        return replace(shape, width=width, inner=tuple(_widened(part, room) for part in shape.inner))
    loose = [fixed_octets((part.item,)) is None for part in shape.inner]
    if not any(loose):
        loose = [True] * len(loose)
    more = (room - sum(part.width for part in shape.inner)) / max(1, sum(loose))
    tall = max((part.height for part in shape.inner), default=CELL)
    inner = (_widened(p, p.width + more * grows) for p, grows in zip(shape.inner, loose, strict=True))
    return replace(shape, width=width, inner=tuple(replace(part, height=tall) for part in inner))


def _draw_box(parent: Element, box: Box, x: float, y: float, width: float, height: float) -> None:
    if box.bits:
        _draw_bits(parent, box.bits, x, y, width)
        return
    kind = f"box {box.kind}{' variable' if box.octets is None else ''}"
    add(parent, "rect", {"class": kind, "x": x, "y": y, "width": width, "height": height})
    add_text(parent, x + width / 2, y + height / 2 - 2, box.label, width - 6, kind="label")
    size = box.note or octets_text(box.octets)
    add_text(parent, x + width / 2, y + height / 2 + 13, size, width - 6, kind="size")
