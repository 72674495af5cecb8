"""docs/tutorials/notebook.ipynb runs from top to bottom, and docs/tutorials/notebook.md shows what it shows."""

from __future__ import annotations

import ast
import re
from importlib import import_module
from typing import Any

import pytest

from tests.house.repository import ROOT

PINGS, ATTRIBUTES = 350, 350 // 5
"""What the client in the notebook asks: a ping for each number below 350, an attribute for each fifth of them."""


@pytest.fixture(scope="module")
def program() -> Any:
    """`scripts/notebook.py`. Its libraries take seconds to import, so a worker without these tests does not."""
    return import_module("notebook")


@pytest.fixture(scope="module")
def notebook(program: Any) -> Any:
    """The notebook as it is committed."""
    return import_module("nbformat").read(program.NOTEBOOK, as_version=4)


def run_cell(source: str, names: dict[str, object]) -> None:
    """Run the code of a cell, and print the value of an expression at its end."""
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "cell", "exec"), names)  # noqa: S102
    if isinstance(last, ast.Expr):
        value = eval(compile(ast.Expression(last.value), "cell", "eval"), names)
        print("" if value is None else value)


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.peers
def test_cells_work_from_top_to_bottom(
    shared_opening: None,
    program: Any,
    notebook: Any,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """In this process and with the shared session; the counts are those of what the client asked."""
    plt = import_module("matplotlib.pyplot")
    monkeypatch.chdir(ROOT)
    plt.switch_backend("agg")
    monkeypatch.setattr(plt, "show", lambda: None)
    names: dict[str, object] = {}
    shown = []
    for cell in program.code_cells(notebook):
        run_cell(cell.source, names)
        shown.append((cell.source, capfd.readouterr().out))

    def text(code: str) -> str:
        (found,) = (out for source, out in shown if code in source)
        return found

    answers = text("from specwire.runtime.spark.answers")
    assert re.search(rf"broker\.ping\|answered\| +0\| +{PINGS}\|", answers), answers
    assert re.search(rf"attr\.get\|answered\| +0\| +{ATTRIBUTES}\|", answers), answers
    assert re.search(r"attr\.get\| +error\| +2\| +1\|", answers), answers
    assert "'_errors': 0" in text("open_session")
    assert len(plt.get_fignums()) == 1
    plt.close("all")


def test_a_kernel_fills_in_what_cells_show(program: Any) -> None:
    """Text, values and figures."""
    sources = (
        "print('a')\n1 + 1",
        "import matplotlib.pyplot as plt\nplt.figure()\nplt.plot([1, 2])\nplt.show()",
    )
    v4 = import_module("nbformat").v4
    notebook = v4.new_notebook(cells=[v4.new_code_cell(source) for source in sources])
    program.execute(notebook)
    first, second = program.code_cells(notebook)
    assert program.shown_texts(first) == "a\n2\n"
    assert len(program.shown_figures(second)) == 1


def test_is_kept_with_what_it_shows(program: Any, notebook: Any) -> None:
    """In the order of its cells, without a warning, and without a place on somebody's machine."""
    numbers = [cell.execution_count for cell in program.code_cells(notebook)]
    assert numbers == list(range(1, len(numbers) + 1))
    outputs = [output for cell in program.code_cells(notebook) for output in cell.outputs]
    assert not [
        output for output in outputs if output.output_type == "error" or output.get("name") == "stderr"
    ]
    assert " at 0x" not in str(outputs)


def test_page_is_of_the_notebook(program: Any, notebook: Any) -> None:
    """`python scripts/notebook.py --page` writes it."""
    text, figures = program.write_page(notebook)
    assert program.PAGE.read_text(encoding="utf-8") == text
    assert {name: (program.DOCS / name).read_bytes() for name in figures} == figures
