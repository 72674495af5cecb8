"""Message selection in the compiled codec: octets are compared in C to find the message's number.

The statements return the number of the message (from 1, in the order of the specification), or 0 if
there is none. Tags of up to eight octets are compared as integers, so the C compiler creates a jump
table or a search.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

from specwire.generator import ir
from specwire.generator.emit.native_names import literal, same
from specwire.generator.emit.python import Lines
from specwire.generator.passes.shapes import role_letters, takes_sender, weight
from specwire.generator.plan.layouts import selected
from specwire.generator.support.octets import pattern_octets


def kind_function(protocol: ir.Protocol) -> str:
    """Return the body of ``_kind_of(frames, count)``, or ``_kind_of(frames, count, sender)``."""
    lines = Lines(1)
    if not protocol.selectors:
        _shapes(lines, protocol)
    elif protocol.selectors[0].pattern:
        _patterns(lines, protocol)
    else:
        _tags(lines, protocol)
    lines.add("return 0")
    return str(lines)


def _tags(lines: Lines, protocol: ir.Protocol) -> None:
    """Compare slices of frames, or whole frames, with the tags of each message."""
    for number, selector in enumerate(protocol.selectors):
        index = f"count - {-selector.frame}" if selector.frame < 0 else str(selector.frame)
        lines.add(f"cdef bytes frame_{number} = frame_at(frames, {index})")
    for number, selector in enumerate(protocol.selectors):
        short = "" if selector.octets is None else f" or len(frame_{number}) < {selector.octets}"
        with lines.block(f"if frame_{number} is None{short}:"):
            lines.add("return 0")
    rows = [(n, pieces) for n, m in enumerate(protocol.messages, 1) for pieces in selected(m, protocol)]
    (first, *others) = protocol.selectors
    if not others and first.octets is not None and first.octets <= 8:
        found = f"number{'_folded' * protocol.folded}(octets_of(frame_0), {first.octets})"
        _switch(lines, found, [(pieces[0], n) for n, pieces in rows])
        return
    # Group tags by their last piece, which identifies most messages.
    rows.sort(key=lambda row: row[1][::-1])
    last = len(protocol.selectors) - 1
    for piece, group in groupby(rows, key=lambda row: row[1][last]):
        with lines.block(f"if {_compared(protocol, last, piece)}:"):
            for number, pieces in group:
                tests = [_compared(protocol, n, pieces[n]) for n in range(last)]
                if not tests:
                    lines.add(f"return {number}")
                    continue
                with lines.block(f"if {' and '.join(tests)}:"):
                    lines.add(f"return {number}")


def _compared(protocol: ir.Protocol, number: int, piece: bytes) -> str:
    """Return the condition that selector `number` finds these octets."""
    whole, frame = protocol.selectors[number].octets is None, f"frame_{number}"
    if protocol.folded:
        size = f"len({frame}) {'==' if whole else '>='} {len(piece)}"
        return f"{size} and {same(f'octets_of({frame})', piece, folded=True)}"
    return f"{'frame_is' if whole else 'frame_begins'}({frame}, {literal(piece)}, {len(piece)})"


def _switch(lines: Lines, tag: str, rows: Iterable[tuple[bytes, int]]) -> None:
    lines.add(f"cdef uint64_t tag = {tag}")
    for number, (piece, kind) in enumerate(rows):
        test = f"tag == 0x{piece.hex()}{'ULL' if len(piece) > 3 else ''}"
        with lines.block(f"{'elif' if number else 'if'} {test}:"):
            lines.add(f"return {kind}")


def _patterns(lines: Lines, protocol: ir.Protocol) -> None:
    """Compare the first frame with the patterns, the longest first."""
    lines.add("cdef bytes frame = frame_at(frames, 0)")
    with lines.block("if frame is None:"):
        lines.add("return 0")
    rows = [(tag, n) for n, message in enumerate(protocol.messages, 1) for tag in message.tags]
    for tag, kind in sorted(rows, key=lambda row: -len(row[0])):
        fixed = _fixed(tag, "frame", folded=protocol.folded)
        with lines.block(f"if len(frame) >= {len(tag) // 2}{fixed}:"):
            lines.add(f"return {kind}")


def _shapes(lines: Lines, protocol: ir.Protocol) -> None:
    """Compare the frames with the shapes of possible senders, the most specific first."""
    rows = [(n, shape) for n, message in enumerate(protocol.messages, 1) for shape in message.shapes]
    rows.sort(key=lambda row: -weight(row[1]))
    roles = role_letters(protocol) if takes_sender(protocol) else ()
    count = max(len(shape.frames) for _, shape in rows)
    for number in range(count):
        lines.add(f"cdef bytes frame_{number} = frame_at(frames, {number})")
    for kind, shape in rows:
        with lines.block(f"if {' and '.join(_fitting(shape, folded=protocol.folded))}:"):
            others = tuple(letter for letter in roles if letter not in shape.senders)
            if shape.needs_sender:
                with lines.block("if sender is None:"):
                    lines.add("return 0")
                with lines.block(f"if sender in {shape.senders!r}:"):
                    lines.add(f"return {kind}")
            elif shape.senders and others:
                with lines.block(f"if sender not in {others!r}:"):
                    lines.add(f"return {kind}")
            else:
                lines.add(f"return {kind}")


def _fitting(shape: ir.Shape, *, folded: bool) -> list[str]:
    """Return the conditions that frames match a shape."""
    least = max(shape.least, len(shape.frames))
    tests = [f"count >= {least}"] + [f"count <= {shape.most}"] * (shape.most is not None)
    for number, head in enumerate(shape.frames):
        size = len(head.octets) // 2
        if size or head.whole:
            frame = f"frame_{number}"
            fixed = _fixed(head.octets, frame, folded=folded)
            tests.append(f"len({frame}) {'==' if head.whole else '>='} {size}{fixed}")
    return tests


def _fixed(pattern: str, frame: str, *, folded: bool) -> str:
    """Return conditions, each after ``and``, that a frame has the octets fixed by a pattern."""
    pieces = [pattern[at : at + 2] for at in range(0, len(pattern), 2)]
    tests = ""
    for whole, run in groupby(enumerate(pieces), key=lambda entry: "?" not in entry[1]):
        entries = list(run)
        if not whole:
            tests += "".join(_partly(frame, at, piece) for at, piece in entries if piece != "??")
        else:
            octets = bytes.fromhex("".join(piece for _, piece in entries))
            at = f" + {entries[0][0]}" if entries[0][0] else ""
            tests += f" and {same(f'octets_of({frame}){at}', octets, folded=folded)}"
    return tests


def _partly(frame: str, at: int, piece: str) -> str:
    """Return the condition, after ``and``, that an octet has the known half of a pattern's octet."""
    ((octet, mask),) = pattern_octets(piece)
    return f" and octets_of({frame})[{at}] & 0x{mask:02x} == 0x{octet:02x}"
