"""Changes of the site's HTML that its style sheet needs: labels in tables, drawings in the page, unbroken options.

Input and output are the HTML of one page's content, as MkDocs hands it to hooks.

- On a narrow screen a table of prose is shown as a list, so each of its cells carries the head of its column.
- A table of many columns is marked, to be set closer.
- A drawing of ours is put into the page instead of an ``<img>``: only then its colours follow the switch between the
  light and the dark scheme.
- Short code such as ``--json`` is marked, so that no line breaks within it.
"""

from __future__ import annotations

import re
from html import escape, unescape
from pathlib import Path

DRAWINGS = ("images/pipeline.svg",)
"""SVG files of docs/ that are put into pages, without their own colours. Each has styles for its own class only."""

_TABLE = re.compile(r"<table>.*?</table>", re.DOTALL)
_ROW = re.compile(r"<tr>(.*?)</tr>", re.DOTALL)
_CELL = re.compile(r"<(t[hd])([^>]*)>(.*?)</\1>", re.DOTALL)
_IMAGE = re.compile(r'<img [^>]*src="([^"]+\.svg)"[^>]*>')
_LINKED_IMAGE = re.compile(rf"<a [^>]*>({_IMAGE.pattern})</a>")
_CODE = re.compile(r"(?<!<pre>)<code>([^<]{1,24})</code>")
_COLOURS = re.compile(r'<style class="colours">.*?</style>', re.DOTALL)
_TAG = re.compile(r"<[^>]+>")

_FEWEST, _MOST, _LONG = 3, 5, 60
"""A table of so many columns is one of prose if the texts of a row have more characters than `_LONG`."""
_WIDE = 7
"""A table of so many columns has less space between them."""


def adapt(html: str, docs: Path) -> str:
    """Return the content of a page with all changes; `docs` is the folder of the sources."""
    html = _TABLE.sub(lambda found: _labelled(found[0]), html)
    html = _CODE.sub(r'<code class="short">\1</code>', html)
    for pattern in (_LINKED_IMAGE, _IMAGE):
        html = pattern.sub(lambda found: _drawn(found[0], found[found.re.groups], docs), html)
    return html


def _labelled(table: str) -> str:
    """Return a table of prose with the head of its column in each cell, and mark one that is wide."""
    first, *rows = (_CELL.findall(row) for row in _ROW.findall(table))
    heads = [_words(text) for _, _, text in first]
    longest = max((sum(len(_words(text)) for _, _, text in row) for row in rows), default=0)
    if len(heads) >= _WIDE:
        return table.replace("<table>", '<table data-wide="">', 1)
    if not _FEWEST <= len(heads) <= _MOST or longest <= _LONG:
        return table

    def row_with_labels(found: re.Match[str]) -> str:
        cells = _CELL.findall(found[1])
        labelled = (
            f'<{tag}{given} data-label="{escape(head)}">{text}</{tag}>'
            for head, (tag, given, text) in zip(heads, cells, strict=True)
        )
        return f"<tr>{''.join(labelled)}</tr>"

    head, opening, body = table.partition("<tbody>")
    return head.replace("<table>", '<table data-prose="">', 1) + opening + _ROW.sub(row_with_labels, body)


def _drawn(tag: str, source: str, docs: Path) -> str:
    """Return the drawing that an image shows, if it is one of `DRAWINGS`; the image itself otherwise."""
    for name in DRAWINGS:
        if source.endswith(name):
            drawing = _COLOURS.sub("", (docs / name).read_text(encoding="utf-8"))
            return drawing.replace("\n", " ")
    return tag


def _words(html: str) -> str:
    return unescape(_TAG.sub("", html)).strip()
