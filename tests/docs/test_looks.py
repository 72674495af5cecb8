"""Changes of the site's HTML for its style sheet: tables of prose, wide tables, short code, drawings."""

from __future__ import annotations

import re

import pytest

import site_looks
from tests.docs.session import ROOT

DOCS = ROOT / "docs"
STYLE = (DOCS / "stylesheets/site.css").read_text(encoding="utf-8")


def table(heads: list[str], row: list[str]) -> str:
    """Return a table of one row as the Markdown library writes it."""
    head = "".join(f"<th>{text}</th>\n" for text in heads)
    cells = "".join(f"<td>{text}</td>\n" for text in row)
    return f"<table>\n<thead>\n<tr>\n{head}</tr>\n</thead>\n<tbody>\n<tr>\n{cells}</tr>\n</tbody>\n</table>"


def test_cells_of_prose_carry_their_heads() -> None:
    """So that a narrow screen can show a row as a list."""
    html = site_looks.adapt(
        table(["command", "what it <b>does</b>", ""], ["<code>x</code>", "words " * 20, "y"]), DOCS
    )
    assert html.startswith('<table data-prose="">')
    assert re.findall(r'<td data-label="([^"]*)">', html) == ["command", "what it does", ""]
    assert html.count("data-label") == 3  # the heads themselves have none


@pytest.mark.parametrize(
    ("heads", "row"),
    [
        (["a", "b", "c"], ["1", "2", "3"]),
        (["a", "b"], ["words " * 20, "2"]),
        (["a"] * 6, ["words " * 20, *["2"] * 5]),
    ],
)
def test_other_tables_stay(heads: list[str], row: list[str]) -> None:
    """Figures, two columns, and tables that would be long lists."""
    given = table(heads, row)
    assert site_looks.adapt(given, DOCS) == given


def test_wide_tables_are_set_closer() -> None:
    """From seven columns."""
    assert site_looks.adapt(table(["a"] * 7, ["1"] * 7), DOCS).startswith('<table data-wide="">')


def test_short_code_is_not_broken() -> None:
    """``--json`` stays on one line; blocks and long code may be broken."""
    given = f"<p><code>--json</code> <code>{'x' * 30}</code></p><pre><code>ls</code></pre>"
    assert site_looks.adapt(given, DOCS) == given.replace("<code>--json", '<code class="short">--json')


def test_drawings_are_part_of_the_page() -> None:
    """With the site's colours instead of their own, and with or without a link around them."""
    image = '<img alt="x" src="../images/pipeline.svg" />'
    for given in (image, f'<a href="../images/pipeline.svg">{image}</a>'):
        html = site_looks.adapt(f"<p>{given}</p>", DOCS)
        assert html.startswith("<p><svg ") and html.endswith("</svg> </p>")
        assert "prefers-color-scheme" not in html and ":root" not in html and "\n" not in html
    other = '<img alt="x" src="../images/flux-scale.svg" />'
    assert site_looks.adapt(other, DOCS) == other


@pytest.mark.parametrize("name", site_looks.DRAWINGS)
def test_drawings_style_nothing_else(name: str) -> None:
    """Every rule is for the class of the drawing, and every colour is one that both schemes of the site define."""
    drawing = (DOCS / name).read_text(encoding="utf-8")
    own = re.search(r'class="(\w+)"', drawing)
    rules = re.search(r"<style>\n(.*?)</style>", drawing, re.DOTALL)
    assert own is not None and rules is not None
    assert [line for line in rules[1].splitlines() if not line.startswith(f".{own[1]} ")] == []
    assert re.findall(r"#[0-9a-f]{3,6}\b", rules[1]) == []
    light, dark = re.findall(r"\{([^}]*--ink:[^}]*)\}", STYLE)
    for variable in set(re.findall(r"var\((--\w+)\)", drawing)):
        assert f"{variable}:" in light and f"{variable}:" in dark, variable


def test_style_sheet_knows_the_marks() -> None:
    """What the pages are marked with is what the style sheet asks for."""
    for mark in (
        "[data-prose]",
        "[data-wide]",
        "attr(data-label)",
        "code.short",
        "svg.pipeline",
        ".doc-signature",
    ):
        assert mark in STYLE
    for scrolling in (".md-typeset__scrollwrap", ".reference .scroll", ".md-typeset pre > code"):
        assert re.search(rf"{re.escape(scrolling)}[^{{]*\{{[^}}]*--shade", STYLE), scrolling
