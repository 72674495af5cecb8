"""Emitter of a protocol's reference page: one HTML file with tables and drawings.

All content comes from the IR, the rules, and the remarks of the compiler; the wording is that of
the grammars and profiles. `page` assembles it from the parts made by the other modules:

    messages, wording, snippets     content of a message, as a table and as a call in Python
    columns                         its columns on Spark
    boxes, octets, envelope         drawings of octets and frames
    dialogs, graph, layered         dialogs, as tables and drawings
    rules, railroads, book          rules, as text with links and as railroad diagrams
    facts                           numbers, timers, answers, assumptions of the compiler

The page needs no network and no script. The drawings need two libraries of the extra ``docs``:
`railroad-diagrams` and, for the layout of states, `grandalf`.
"""

from __future__ import annotations

from collections.abc import Sequence

from specwire.generator import ir
from specwire.generator.emit.write import Emitter, compilation


def emit(protocol: ir.Protocol) -> str:
    """Return the page of a protocol."""
    # Every run loads all emitters, so import the dependencies of this one on use.
    from specwire.generator.emit.reference.book import book_of
    from specwire.generator.emit.reference.page import reference_page

    return reference_page(protocol, book_of(compilation()))


def overview(protocols: Sequence[ir.Protocol]) -> dict[str, str]:
    """Return the page that links those of all protocols."""
    from specwire.generator.emit.reference.page import index_page

    return {"index.html": index_page(protocols)}


EMITTER = Emitter("reference.html", emit, default=False, overview=overview)
