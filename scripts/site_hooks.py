"""Hooks of MkDocs: add the pages of protocols and of the Python API, adapt tables and drawings, remove notes for tests.

Nothing here, or in ``mkdocs.yml``, fetches anything: the site is built and read without a network.
"""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from mkdocs.structure.toc import get_toc

import site_api
import site_looks
from site_protocols import FOLDER, body, drawing_styles, outline, source_pages

DECISIONS = "explanation/decisions"
DRAWINGS = "stylesheets/drawings.css"
_NOTE = re.compile(r"^ *<!-- test: .*? -->\n", re.MULTILINE)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """List the decisions in the menu, by their titles, and the pages of the Python API."""
    pages = sorted(Path(config.docs_dir, DECISIONS).glob("*.md"))
    titles = [page.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ") for page in pages]
    made = {
        "Decisions": [{title: f"{DECISIONS}/{page.name}"} for title, page in zip(titles, pages, strict=True)],
        "Python API": site_api.menu(),
    }
    for section in config.nav or ():
        for entries in section.values():
            for entry in entries:
                if isinstance(entry, dict):
                    entry.update((name, listed) for name, listed in made.items() if name in entry)
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages of grammars and of the Python API, and the style sheet of the drawings."""
    for place, text in (source_pages() | site_api.source_pages()).items():
        files.append(File.generated(config, place, content=text))
    files.append(File.generated(config, DRAWINGS, content=drawing_styles()))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Take the notes for tests out of a page."""
    return _NOTE.sub("", markdown)


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Adapt a page to the style sheet, and add the sections of a protocol to its page."""
    place = PurePosixPath(page.file.src_uri)
    html = site_looks.adapt(html, Path(config.docs_dir))
    if place.parent.name != FOLDER or place.stem == "index":
        return html
    made = body(place.stem)
    page.toc = get_toc(outline(made.contents))  # type: ignore[arg-type]
    return html + made.html
