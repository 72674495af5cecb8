"""Assembly of the page: one HTML file from the IR and the book of rules.

The templates escape all values except drawings. A ``>`` is always escaped, so no text can end the
comment at the start of a page.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from specwire.generator import ir
from specwire.generator.emit.reference import facts
from specwire.generator.emit.reference.book import Book
from specwire.generator.emit.reference.dialogs import view_dialogs
from specwire.generator.emit.reference.facts import Table
from specwire.generator.emit.reference.messages import view_messages
from specwire.generator.emit.reference.rules import view_rules
from specwire.generator.emit.write import notice, render

_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")
"""Characters that HTML forbids, or that change the direction of the text around them."""


@dataclass(frozen=True, slots=True)
class Link:
    """Entry of the table of contents."""

    text: str
    anchor: str
    inside: tuple[Link, ...] = ()


@dataclass(frozen=True, slots=True)
class Entry:
    """Entry of the index: a protocol and the address of its page."""

    name: str
    href: str
    title: str
    edition: str
    source: str
    messages: int
    roles: str


@dataclass(frozen=True, slots=True)
class Body:
    """Sections of a page, for embedding in another page; `contents` lists them."""

    html: str
    contents: tuple[Link, ...]


def reference_page(protocol: ir.Protocol, book: Book) -> str:
    """Return the complete reference page of a protocol, without other files, network or script."""
    view = _view(protocol, book, {})
    told = notice(protocol)
    page = render("reference.html.j2", notice=told, protocol=protocol, contents=_contents(view), **view)
    return _clean(page)


def reference_body(protocol: ir.Protocol, book: Book, examples: Mapping[str, Table]) -> Body:
    """Return only the sections; `examples` has annotated octets of messages, by message class."""
    view = _view(protocol, book, examples)
    return Body(_clean(render("reference_body.html.j2", **view)), _contents(view))


def _view(protocol: ir.Protocol, book: Book, examples: Mapping[str, Table]) -> Mapping[str, Any]:
    return {
        "roles": facts.roles(protocol),
        "messages": view_messages(protocol),
        "numbers": facts.numbers(protocol),
        "framing": facts.framing(protocol),
        "dialogs": view_dialogs(protocol),
        "timers": facts.timers(protocol),
        "answers": facts.answers(protocol),
        "rules": view_rules(book),
        "assumptions": facts.assumptions(book.remarks),
        "remarks": facts.other_remarks(book.remarks),
        "examples": examples,
    }


def index_page(protocols: Sequence[ir.Protocol]) -> str:
    """Return the index page of all protocols of a run."""
    entries = [
        Entry(
            name=protocol.name,
            href=f"{protocol.name}/reference.html",
            title=protocol.title,
            edition=protocol.edition,
            source=protocol.source,
            messages=len(protocol.messages),
            roles=", ".join(role.name for role in protocol.roles),
        )
        for protocol in protocols
    ]
    return _clean(render("reference_index.html.j2", notice=notice(*protocols), entries=entries))


def _contents(view: Mapping[str, Any]) -> tuple[Link, ...]:
    """Return the sections of the page, and the entries of the long ones."""
    named = tuple(Link(item.name, item.anchor) for item in view["messages"])
    talks = tuple(Link(item.name, item.anchor) for item in view["dialogs"])
    rules = tuple(Link(item.name, item.anchor) for item in view["rules"].rules)
    sections = (
        ("Roles", "roles", view["roles"].rows, ()),
        ("Messages", "messages", True, named),
        ("Numbers", "numbers", view["numbers"], ()),
        ("Framing on a byte stream", "framing", view["framing"], ()),
        ("Dialogs", "dialogs", view["dialogs"], talks),
        ("Timers", "timers", view["timers"].rows, ()),
        ("Answers to faults", "answers", view["answers"], ()),
        ("Rules", "rules", True, rules),
        ("Grammar as published", "grammar", True, ()),
        ("Assumptions of the compiler", "remarks", True, ()),
    )
    return tuple(Link(text, anchor, inside) for text, anchor, there, inside in sections if there)


def _clean(page: str) -> str:
    return _UNSEEN.sub("\ufffd", page)
