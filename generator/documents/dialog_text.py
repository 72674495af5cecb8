"""Conversion of a drawn dialog (``C: OPEN``, ``Repeat:``, ``...``) to the definition of a dialog rule.

Steps follow each other. The body of a repeat is any number of its exchanges, ``*( a / b )``. An
exchange ends at ``...`` or at an empty line. If columns side by side have the same shape, the steps
of a row are alternatives (``W:HUGZ / B:HUGZ``); otherwise each column is a separate dialog.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from lark import Lark, Token, Tree
from lark.exceptions import LarkError, UnexpectedInput
from lark.indenter import Indenter

from specwire.generator.abnf.lines import Places
from specwire.generator.diagnostics import Diagnostics, Source, Span


@dataclass(frozen=True, slots=True)
class Step:
    """A step: the sender and the command, or several of them if columns were read together."""

    labels: tuple[tuple[str, str], ...]
    span: Span
    repeated: bool = False
    """The step may occur any number of times, ``*PARTIAL``."""


@dataclass(frozen=True, slots=True)
class Repeat:
    """Any number of exchanges in any order; an exchange is a sequence of steps."""

    exchanges: tuple[tuple[Item, ...], ...]


Item = Step | Repeat


@dataclass(frozen=True, slots=True)
class DrawnDialog:
    """The items of one dialog in order."""

    items: tuple[Item, ...]

    def steps(self) -> Iterator[Step]:
        """Yield every step, including those inside repeats."""
        yield from _steps(self.items)

    def abnf(self) -> str:
        """Return the dialog as the definition of a rule."""
        return _write(self.items)

    def renamed(self, new_name: Callable[[str], str]) -> DrawnDialog:
        """Return the dialog with each command renamed by `new_name`."""
        return DrawnDialog(_renamed(self.items, new_name))


def parse_dialog(source: Source, text: str, diagnostics: Diagnostics) -> tuple[DrawnDialog, ...]:
    """Return the dialogs in `text`, one unless columns differ; empty after E705 if it cannot be read."""
    text = "\n".join(without_titles(text.expandtabs(8).split("\n")))
    places = Places(source, text)
    try:
        columns = [_items(_parse(column), places) for column in _columns(text)]
    except UnexpectedInput as error:
        _refuse(_line_span(text, error.line, places), diagnostics)
        return ()
    except LarkError:
        # The indenter's own error has no place.
        _refuse(_line_span(text, len(text) - len(text.lstrip("\n")) + 1, places), diagnostics)
        return ()
    merged = columns[0]
    for column in columns[1:]:
        if _shape(column) != _shape(merged):
            return tuple(DrawnDialog(items) for items in columns)
        merged = _merge(merged, column)
    return (DrawnDialog(merged),)


def without_titles(lines: Sequence[str]) -> list[str]:
    """Return the lines, with titles and the dashes below them replaced by empty lines."""
    kept = list(lines)
    for number, line in enumerate(lines[1:], start=1):
        if line.strip() and not line.strip().strip("-= \t") and "--" in line and lines[number - 1].strip():
            kept[number - 1] = kept[number] = ""
    return kept


def _line_span(text: str, line: int, places: Places) -> Span:
    lines = text.split("\n")
    number = min(max(line, 1), len(lines))
    written = lines[number - 1].rstrip()
    start = sum(len(above) + 1 for above in lines[: number - 1]) + len(written) - len(written.lstrip())
    return places.span(start, start + max(len(written.strip()), 1))


def _refuse(span: Span, diagnostics: Diagnostics) -> None:
    help = "write 'C: COMMAND', 'Repeat:' with an indented body, or '...' on each line"
    diagnostics.error("E705", span, "this dialog cannot be read from this line on", help)


class _Layout(Indenter):
    NL_type = "_NL"
    OPEN_PAREN_types: list[str] = []  # noqa: RUF012 - the base class declares it so
    CLOSE_PAREN_types: list[str] = []  # noqa: RUF012
    INDENT_type = "_INDENT"
    DEDENT_type = "_DEDENT"
    tab_len = 8


@cache
def _parser() -> Lark:
    grammar = Path(__file__).with_name("dialog_text.lark").read_text(encoding="utf-8")
    return Lark(
        grammar,
        parser="lalr",
        lexer="contextual",
        start="dialog",
        postlex=_Layout(),
        propagate_positions=True,
    )


def _parse(column: str) -> Tree[Token]:
    # Remove the common indent of the column.
    written = [line for line in column.split("\n") if line.strip()]
    margin = min((len(line) - len(line.lstrip(" ")) for line in written), default=0)
    pushed = "\n".join(line[margin:] if line.strip() else "" for line in column.split("\n"))
    tree = _parser().parse(pushed.rstrip() + "\n")
    for token in tree.scan_values(lambda value: isinstance(value, Token)):
        if isinstance(token, Token) and token.column is not None:
            token.column += margin
    return tree


def _columns(text: str) -> list[str]:
    """Return the columns of a dialog, each with blanks in place of the others."""
    lines = text.split("\n")
    ends = [gap.end() for line in lines for gap in re.finditer(r"(?<=\S) {2,}(?=\S)", line)]
    if not ends:
        return [text]
    border = min(ends)
    right = _columns("\n".join(line[border:] for line in lines))
    left = "\n".join(line[:border] for line in lines)
    return [left, *("\n".join(" " * border + line for line in column.split("\n")) for column in right)]


def _items(tree: Tree[Token], places: Places) -> tuple[Item, ...]:
    (block,) = tree.children
    assert isinstance(block, Tree)
    return tuple(item for exchange in _exchanges(block, places, divide=False) for item in exchange)


def _exchanges(block: Tree[Token], places: Places, *, divide: bool) -> list[tuple[Item, ...]]:
    """Return the items of a block; with `divide`, split at ``...`` and at empty lines."""
    exchanges: list[list[Item]] = [[]]
    last_line = 0
    for child in block.children:
        assert isinstance(child, Tree)
        if child.data == "more":
            exchanges.append([])
            continue
        line = child.meta.line
        if divide and last_line and line > last_line + 1:
            exchanges.append([])
        last_line = child.meta.end_line if child.data == "repeat" else line
        exchanges[-1].append(_item(child, places))
    return [tuple(items) for items in exchanges if items]


def _item(tree: Tree[Token], places: Places) -> Item:
    if tree.data == "repeat":
        block = tree.children[-1]
        assert isinstance(block, Tree)
        return Repeat(tuple(_exchanges(block, places, divide=True)))
    sender, *repetition, command = tree.children
    assert isinstance(sender, Token) and isinstance(command, Token)
    assert sender.line is not None and sender.column is not None and command.column is not None
    # Lark's columns count without the margin, which `_parse` added to both tokens.
    end = command.column + len(command)
    span = Span(places.source, sender.line, sender.column, sender.line, end)
    return Step(((str(sender), str(command)),), span, repeated=bool(repetition))


def _shape(items: tuple[Item, ...]) -> object:
    return tuple(
        tuple(_shape(exchange) for exchange in item.exchanges) if isinstance(item, Repeat) else item.repeated
        for item in items
    )


def _merge(left: tuple[Item, ...], right: tuple[Item, ...]) -> tuple[Item, ...]:
    merged: list[Item] = []
    for one, other in zip(left, right, strict=True):
        if isinstance(one, Step) and isinstance(other, Step):
            merged.append(replace(one, labels=tuple(dict.fromkeys(one.labels + other.labels))))
        elif isinstance(one, Repeat) and isinstance(other, Repeat):
            pairs = zip(one.exchanges, other.exchanges, strict=True)
            merged.append(Repeat(tuple(_merge(a, b) for a, b in pairs)))
    return tuple(merged)


def _renamed(items: tuple[Item, ...], new_name: Callable[[str], str]) -> tuple[Item, ...]:
    return tuple(
        Repeat(tuple(_renamed(exchange, new_name) for exchange in item.exchanges))
        if isinstance(item, Repeat)
        else replace(item, labels=tuple((sender, new_name(command)) for sender, command in item.labels))
        for item in items
    )


def _steps(items: tuple[Item, ...]) -> Iterator[Step]:
    for item in items:
        if isinstance(item, Step):
            yield item
        else:
            for exchange in item.exchanges:
                yield from _steps(exchange)


def _write(items: tuple[Item, ...]) -> str:
    return " ".join(_write_item(item, alone=len(items) == 1) for item in items)


def _write_item(item: Item, *, alone: bool) -> str:
    if isinstance(item, Repeat):
        return f"*( {' / '.join(_write(exchange) for exchange in item.exchanges)} )"
    labels = " / ".join(f"{sender}:{command}" for sender, command in item.labels)
    grouped = labels if len(item.labels) == 1 or (alone and not item.repeated) else f"( {labels} )"
    return f"*{grouped}" if item.repeated else grouped
