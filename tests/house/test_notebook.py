"""docs/tutorials/notebook.ipynb runs from top to bottom, and docs/tutorials/notebook.md shows what it shows."""

from __future__ import annotations

import re

import nbformat
import pytest
from nbformat import NotebookNode

import notebook as program
from specwire.runtime.spark.session.target import JAVA_VERSION, find_java
from tests.house.repository import ROOT

PINGS, ATTRIBUTES = 350, 350 // 5
"""What the client in the notebook asks: a ping for each number below 350, an attribute for each fifth of them."""


def read() -> NotebookNode:
    """Return the notebook as it is committed."""
    notebook: NotebookNode = nbformat.read(program.NOTEBOOK, as_version=4)
    return notebook


def shown(notebook: NotebookNode, code: str) -> str:
    """Return the text that the one cell with this code shows."""
    (cell,) = (cell for cell in program.code_cells(notebook) if code in cell.source)
    return program.shown_texts(cell)


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.peers
@pytest.mark.skipif(find_java() is None, reason=f"Spark needs Java {JAVA_VERSION} or newer")
def test_runs_from_top_to_bottom(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each cell works, and the counts are those of what the client asked."""
    monkeypatch.chdir(ROOT)
    notebook = read()
    for cell in program.code_cells(notebook):
        cell.outputs = []
    program.execute(notebook)
    answers = shown(notebook, "from specwire.runtime.spark.answers")
    assert re.search(rf"broker\.ping\|answered\| +0\| +{PINGS}\|", answers), answers
    assert re.search(rf"attr\.get\|answered\| +0\| +{ATTRIBUTES}\|", answers), answers
    assert re.search(r"attr\.get\| +error\| +2\| +1\|", answers), answers
    assert "'_errors': 0" in shown(notebook, "open_session")
    drawn = [len(program.shown_figures(cell)) for cell in program.code_cells(notebook)]
    assert sum(drawn) == 1


def test_is_kept_with_what_it_shows() -> None:
    """In the order of its cells, without a warning, and without a place on somebody's machine."""
    notebook = read()
    numbers = [cell.execution_count for cell in program.code_cells(notebook)]
    assert numbers == list(range(1, len(numbers) + 1))
    outputs = [output for cell in program.code_cells(notebook) for output in cell.outputs]
    assert not [
        output for output in outputs if output.output_type == "error" or output.get("name") == "stderr"
    ]
    assert " at 0x" not in str(outputs)


def test_page_is_of_the_notebook() -> None:
    """`python scripts/notebook.py --page` writes it."""
    text, figures = program.write_page(read())
    assert program.PAGE.read_text(encoding="utf-8") == text
    assert {name: (program.DOCS / name).read_bytes() for name in figures} == figures
