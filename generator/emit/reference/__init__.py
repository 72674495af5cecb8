"""The reference page of a protocol: one HTML file with tables and drawings, for people.

Everything on it comes from the IR, the rules and what the compiler remarked; the words are those of our
grammars and profiles. `page` puts it together, the other modules make its parts:

    messages, wording, snippets     what is in a message, as a table and as a call in Python
    columns                         what it becomes on Spark
    boxes, octets, envelope         the same as drawings of octets and frames
    dialogs, graph, layered         who may send what when, as tables and drawings
    rules, railroads, book          the rules, as text with links and as railroad diagrams
    facts                           numbers, timers, answers; what the compiler assumed

The page needs no network and no script. It is drawn with two libraries of the extra ``docs``:
`railroad-diagrams` and, to place the states, `grandalf`.
"""

from __future__ import annotations

from collections.abc import Sequence

from specwire.generator import ir
from specwire.generator.emit.write import Emitter, compilation


def emit(protocol: ir.Protocol) -> str:
    """Return the page of a protocol."""
    # Every run of the generator loads every emitter: what this one needs is imported where it is used.
    from specwire.generator.emit.reference.book import book_of
    from specwire.generator.emit.reference.page import reference_page

    return reference_page(protocol, book_of(compilation()))


def overview(protocols: Sequence[ir.Protocol]) -> dict[str, str]:
    """Return the page that links those of all protocols."""
    from specwire.generator.emit.reference.page import index_page

    return {"index.html": index_page(protocols)}


EMITTER = Emitter("reference.html", emit, default=False, overview=overview)
