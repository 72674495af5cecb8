"""The site: it is built without a network, links nothing that is not there, fetches nothing, and its pages are whole."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from functools import cached_property
from html.parser import HTMLParser
from pathlib import Path
from shutil import which
from urllib.parse import unquote, urlsplit

import pytest

from tests.docs.__main__ import can_unshare
from tests.docs.session import ROOT

pytestmark = pytest.mark.slow

pytest.importorskip("mkdocs", reason="the site is built with mkdocs, of the extra dev")
site_api = pytest.importorskip(
    "site_api", reason="its pages of the API are made by mkdocstrings, of the extra docs"
)

LOADS = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "src"}
"""Elements that make a browser fetch, and the attribute that says what."""


class Html(HTMLParser):
    """What of a page matters here: its anchors, its links, and what it makes a browser load."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if given.get(LOADS.get(tag, "-")) and given.get("rel") != "canonical":
            self.loads.append(given[LOADS[tag]])


class Site:
    """A site that was built."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @cached_property
    def pages(self) -> Mapping[Path, Html]:
        """Every page, read."""
        return {
            path: Html(path.read_text(encoding="utf-8"))
            for path in sorted(self.folder.rglob("*.html"))
            if path.name != "404.html"
        }


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """Build the site, where possible in a network without a way out; warnings of MkDocs are errors."""
    folder = tmp_path_factory.mktemp("site")
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    alone = ["unshare", "-rn"] if can_unshare() else []
    run = subprocess.run(
        [*alone, *build],
        cwd=ROOT,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    return Site(folder)


def places(site: Site) -> Iterator[tuple[Path, Html, str]]:
    """Yield each link of the site with the page that it is on."""
    for path, page in site.pages.items():
        for link in page.links:
            yield path, page, link


def test_nothing_is_loaded_from_elsewhere(site: Site) -> None:
    """A browser without a network shows everything: scripts, styles, images and fonts are the site's own."""
    for path, page in site.pages.items():
        for name in page.loads:
            parts = urlsplit(name)
            assert not parts.scheme and not parts.netloc, f"{path.name} loads {name}"
            assert (path.parent / unquote(parts.path)).is_file(), f"{path.name} loads {name}"
    for path in site.folder.rglob("*.css"):
        urls = re.findall(r"url\(['\"]?([^)'\"]+)", path.read_text(encoding="utf-8"))
        assert [url for url in urls if not url.startswith(("data:", "#"))] == [], path.name
        assert "@import" not in path.read_text(encoding="utf-8"), path.name


def test_links_lead_to_something(site: Site) -> None:
    """Pages, files and the places on them, those that are made of grammars included."""
    dead = []
    for path, page, link in places(site):
        parts = urlsplit(link)
        if parts.scheme in ("http", "https", "mailto"):
            continue
        target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
        if not target.exists() or target.is_dir():
            dead.append(f"{path.relative_to(site.folder)}: {link}")
        elif parts.fragment and target in site.pages:
            there = page if target == path else site.pages[target]
            if unquote(parts.fragment) not in there.anchors:
                dead.append(f"{path.relative_to(site.folder)}: {link}")
    assert dead == []


def test_every_page_is_in_the_menu(site: Site) -> None:
    """A page that nobody can find is not there."""
    listed = {
        (site.folder / "index.html").parent.joinpath(unquote(urlsplit(link).path)).resolve()
        for link in site.pages[site.folder / "index.html"].links
        if not urlsplit(link).scheme
    }
    assert [str(path.relative_to(site.folder)) for path in site.pages if path not in listed] == []


def test_pages_of_protocols_are_whole(site: Site) -> None:
    """One for each grammar, with its octets, its rules, an example of each message, and its columns."""
    names = {path.parent.name for path in (ROOT / "grammars").glob("*/profile.toml")}
    pages = {
        path.stem: path.read_text(encoding="utf-8") for path in (site.folder / "protocols").glob("*.html")
    }
    assert set(pages) == names | {"index"}
    for name in names:
        messages = pages[name].count('<article class="message">')
        assert messages > 0
        for there in ("Octet by octet</h4>", "On Spark</h4>", 'class="octets"'):
            assert pages[name].count(there) >= messages, (name, there)
        assert 'id="grammar"' in pages[name] and "railroad-diagram" in pages[name]
        assert pages[name].count("undefined") == 0


def test_public_names_have_a_place(site: Site) -> None:
    """Every name of a page of the API has its heading, which links lead to."""
    for page in site_api.pages():
        anchors = site.pages[site.folder / page.place.replace(".md", ".html")].anchors
        for section in page.sections:
            names = section.names or site_api.public_names(section.module)
            assert len(names) > 0
            assert [name for name in names if f"{section.module}.{name}" not in anchors] == [], section.module


def test_public_modules_have_a_page(site: Site) -> None:
    """That is, those which docs/reference/api.md lists."""
    listed = re.findall(
        r"^\*\*\[`([\w.]+)`\]", (ROOT / "docs/reference/api.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert len(listed) > 10
    assert set(listed) <= {section.module for page in site_api.pages() for section in page.sections}


def test_api_pages_have_signatures_and_docstrings(site: Site) -> None:
    """From the sources: arguments with their types and defaults, errors, fields."""
    text = {
        page.name: " ".join(
            re.sub(
                r"<[^>]+>", "", (site.folder / page.place.replace(".md", ".html")).read_text(encoding="utf-8")
            ).split()
        )
        for page in site_api.pages()
    }
    assert "decode(" in text["generated-package"] and "max_octets: int" in text["generated-package"]
    assert "Virtual path, complete or a prefix; starts with a slash." in text["generated-package"]
    assert "close(" in text["runtime-capture"] and "segment_rows: int = 50000" in text["runtime-capture"]
    assert "CodecError" in text["generated-support"] and "Protocol" in text["generator-ir"]
    for page, words in text.items():
        assert ":::" not in words and "mkdocstrings" not in words, page


def test_tables_fit_or_scroll(site: Site) -> None:
    """Those of protocols are inside what scrolls; those of more than six columns are set closer."""
    for path in (site.folder / "protocols").glob("*.html"):
        text = path.read_text(encoding="utf-8")
        scrolling = re.findall(r'<div class="scroll"[^>]*>\s*<table', text)
        assert path.stem == "index" or len(scrolling) == len(re.findall("<table", text)) > 0, path.name
    benchmarks = (site.folder / "explanation/benchmarks/spark.html").read_text(encoding="utf-8")
    assert '<table data-wide="">' in benchmarks
    for table in re.findall(r"<table>.*?</table>", benchmarks, re.DOTALL):
        assert len(re.findall("<th[ >]", table)) <= 6


def test_prose_in_tables_is_labelled(site: Site) -> None:
    """A narrow screen shows the table of commands as a list."""
    text = (site.folder / "reference/command-line.html").read_text(encoding="utf-8")
    assert text.count('data-label="what it does"') > 60


def test_drawings_follow_the_scheme(site: Site) -> None:
    """They are in the page: an image sees the system's scheme, and not the switch of the site."""
    text = (site.folder / "index.html").read_text(encoding="utf-8")
    assert '<svg xmlns="http://www.w3.org/2000/svg" class="pipeline"' in text
    assert "pipeline.svg" not in text


def test_notes_for_tests_are_not_shown(site: Site) -> None:
    """They are for tests."""
    assert [path.name for path in site.pages if "<!-- test:" in path.read_text(encoding="utf-8")] == []


@pytest.mark.skipif(which("chromium") is None, reason="asks the browser chromium")
def test_search_works_from_the_disk(site: Site, tmp_path: Path) -> None:
    """Browsers start no workers there; the site brings what takes their place."""
    run = subprocess.run(
        [
            *("chromium", "--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=20000"),
            *(
                f"--user-data-dir={tmp_path}",
                "--dump-dom",
                f"{(site.folder / 'index.html').as_uri()}?q=credit",
            ),
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert re.search(r"\d+ matching documents", run.stdout), run.stderr[-2000:]


def test_search_finds_messages(site: Site) -> None:
    """The index has the sections of protocols, so that a message is found by its name."""
    index = (site.folder / "search/search_index.js").read_text(encoding="utf-8")
    assert '"location":"protocols/filemq.html#message-Nom"' in index.replace(" ", "")
