"""The pages of the site that are made of grammars: one for each protocol, and the table of them all.

What stands on a protocol's page is decided by `specwire.generator.emit.reference`, which writes the same as a page of
its own (``specwire generate --target reference``); here it gets the site's look and a worked example of each message.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from html import escape
from pathlib import Path

from site_examples import examples
from specwire.generator.emit.reference.book import book_of
from specwire.generator.emit.reference.page import Body, Link, reference_body
from specwire.generator.emit.write import render
from specwire.generator.pipeline import Compilation, compile_protocol

GRAMMARS = Path(__file__).resolve().parents[1] / "grammars"
FOLDER = "protocols"
"""The folder of these pages in the site."""
_HEADING = re.compile(r'<(h[2-4]) id="([^"]+)">(.*?)</\1>', re.DOTALL)


def protocol_names() -> list[str]:
    """Return the protocols of the project, in the order of their names."""
    return sorted(path.parent.name for path in GRAMMARS.glob("*/profile.toml"))


def source_pages() -> dict[str, str]:
    """Return the pages' Markdown by their places: what the site's menu, search and links go by."""
    found = {f"{FOLDER}/index.md": _index(_compilations().values())}
    for name, compilation in _compilations().items():
        protocol = compilation.protocol
        found[f"{FOLDER}/{name}.md"] = (
            f"---\ntitle: {name}\ndescription: {protocol.edition}, octet by octet\n---\n\n"
            f"# {_plain(protocol.title)}\n\n"
            f"Edition {_plain(protocol.edition)}; package `specwire.generated.{name}`. Source: "
            f"{_plain(protocol.source) or 'not named'}. Input digest: `sha256:{protocol.digest}`.\n\n"
            "Written from the grammar and its profile. Octets count from 0 at the start of a frame; integers are "
            "unsigned, the most significant octet first.\n"
        )
    return found


def body(name: str) -> Body:
    """Return the sections of a protocol's page, with links to each of them."""
    compilation = _compilations()[name]
    made = reference_body(compilation.protocol, book_of(compilation), examples(compilation.protocol))
    html = _HEADING.sub(
        r'<\1 id="\2">\3<a class="headerlink" href="#\2" title="Link to this">¶</a></\1>', made.html
    )
    return Body(f'<div class="reference">\n{html}\n</div>\n', made.contents)


def drawing_styles() -> str:
    """Return the style sheet of the drawings, for the site's own colours."""
    return render("reference_drawings.css.j2").replace("svg", ".reference svg")


def outline(contents: Sequence[Link], level: int = 2) -> list[dict[str, object]]:
    """Return the contents of a page as MkDocs has them."""
    return [
        {
            "level": level,
            "id": link.anchor,
            "name": link.text,
            "html": escape(link.text),
            "data-toc-label": "",
            "children": outline(link.inside, level + 1),
        }
        for link in contents
    ]


@cache
def _compilations() -> Mapping[str, Compilation]:
    return {name: compile_protocol(GRAMMARS / name, shown=f"grammars/{name}") for name in protocol_names()}


def _index(compilations: Iterable[Compilation]) -> str:
    rows = "".join(
        f"| [{found.protocol.name}]({found.protocol.name}.md) | {_plain(found.protocol.title)} "
        f"| {_plain(found.protocol.edition)} | {', '.join(role.name for role in found.protocol.roles)} "
        f"| {len(found.protocol.messages)} |\n"
        for found in compilations
    )
    return (
        "# Protocols\n\nEach page is written from a grammar and its profile: the octets of every message, what may be said "
        "when, every rule as published, the columns on Spark, and an example octet by octet.\n\n"
        "| Protocol | Title | Edition | Roles | Messages |\n|---|---|---|---|---:|\n" + rows
    )


def _plain(text: str) -> str:
    """Return a text of a profile as Markdown that shows it as it is."""
    return re.sub(r"([\\`*_{}\[\]<>|#])", r"\\\1", " ".join(text.split()))
