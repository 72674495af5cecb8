"""Reference pages for tests: those of the project's protocols, and a reader that finds faults in any page."""

from __future__ import annotations

from collections import Counter
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from xml.etree.ElementTree import Element, fromstring

from specwire.generator.emit.reference.book import book_of
from specwire.generator.emit.reference.page import reference_page
from specwire.generator.pipeline import Compilation, compile_protocol

ROOT = Path(__file__).resolve().parents[2]
NAMES = sorted(path.name for path in (ROOT / "grammars").iterdir() if path.is_dir())
EMPTY = frozenset({"meta", "br", "hr", "img", "link", "input"})


@cache
def compilation(name: str) -> Compilation:
    """Return one of the project's protocols, compiled."""
    return compile_protocol(ROOT / "grammars" / name, shown=f"grammars/{name}")


@cache
def page_of(name: str) -> str:
    """Return the reference page of one of the project's protocols."""
    return page(compilation(name))


def page(compiled: Compilation) -> str:
    """Return the reference page of a compiled protocol."""
    return reference_page(compiled.protocol, book_of(compiled))


class Page(HTMLParser):
    """A page as its reader finds it; `faults` says what is not closed, doubled, dead, active or foreign."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.ids: Counter[str] = Counter()
        self.links: list[str] = []
        self.tags: Counter[str] = Counter()
        self.headings: list[tuple[int, str]] = []
        self.attributes: list[tuple[str, dict[str, str]]] = []
        self.texts: list[str] = []
        self._open: list[str] = []
        self._faults: list[str] = []
        self.feed(text)
        self.close()

    @property
    def faults(self) -> list[str]:
        """What is wrong with the page."""
        found = [*self._faults, *(f"not closed: {tag}" for tag in self._open)]
        found += [f"two of id {name}" for name, times in self.ids.items() if times > 1]
        found += [f"dead link {link}" for link in self.links if link[1:] not in self.ids]
        return found

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.tags[tag] += 1
        self.attributes.append((tag, given))
        if tag not in EMPTY:
            self._open.append(tag)
        if len(given) != len(attrs):
            self._faults.append(f"an attribute twice in <{tag}>")
        if "id" in given:
            self.ids[given["id"]] += 1
        if tag == "a":
            self.links.append(given.get("href", ""))
        if tag == "script" or any(name.startswith("on") or name in ("src", "srcset") for name in given):
            self._faults.append(f"active or foreign content: <{tag} {given}>")
        if len(tag) == 2 and tag[0] == "h" and tag[1].isdigit():
            self.headings.append((int(tag[1]), ""))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in EMPTY:
            self._open.pop()

    def handle_endtag(self, tag: str) -> None:
        if not self._open or self._open[-1] != tag:
            self._faults.append(f"</{tag}> closes {self._open[-1:]} in line {self.getpos()[0]}")
        else:
            self._open.pop()

    def handle_data(self, data: str) -> None:
        self.texts.append(data)
        if self._open and self.headings and self._open[-1] == f"h{self.headings[-1][0]}":
            level, text = self.headings[-1]
            self.headings[-1] = level, text + data


def drawings(text: str, kind: str) -> list[Element]:
    """Return the drawings of a kind in a page, each read as XML."""
    found: list[Element] = []
    for part in text.split("<svg")[1:]:
        body = "<svg" + part[: part.index("</svg>")] + "</svg>"
        root = fromstring(body)
        if kind in root.get("class", "").split():
            found.append(root)
    return found
