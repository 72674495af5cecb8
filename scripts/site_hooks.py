"""What MkDocs calls while it builds the site: pages of protocols come from grammars, and notes for tests go.

Nothing here, or in ``mkdocs.yml``, fetches anything: the site is built and read without a network.
"""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from mkdocs.structure.toc import get_toc

from site_protocols import FOLDER, body, drawing_styles, outline, source_pages

DECISIONS = "explanation/decisions"
DRAWINGS = "stylesheets/drawings.css"
_NOTE = re.compile(r"^ *<!-- test: .*? -->\n", re.MULTILINE)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """List the decisions in the menu, by their titles."""
    pages = sorted(Path(config.docs_dir, DECISIONS).glob("*.md"))
    titles = [page.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ") for page in pages]
    listed = [{title: f"{DECISIONS}/{page.name}"} for title, page in zip(titles, pages, strict=True)]
    for section in config.nav or ():
        for entries in section.values():
            for entry in entries:
                if isinstance(entry, dict) and "Decisions" in entry:
                    entry["Decisions"] = listed
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are made of grammars, and the style sheet of their drawings."""
    for place, text in source_pages().items():
        files.append(File.generated(config, place, content=text))
    files.append(File.generated(config, DRAWINGS, content=drawing_styles()))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Take the notes for tests out of a page."""
    return _NOTE.sub("", markdown)


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Put the sections of a protocol below the words that open its page."""
    place = PurePosixPath(page.file.src_uri)
    if place.parent.name != FOLDER or place.stem == "index":
        return html
    made = body(place.stem)
    page.toc = get_toc(outline(made.contents))  # type: ignore[arg-type]
    return html + made.html
