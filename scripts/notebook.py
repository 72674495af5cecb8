"""Run docs/tutorials/notebook.ipynb from top to bottom, keep what it shows, and write the same as a page for the site.

``python scripts/notebook.py`` runs it, stores its outputs in it, and writes ``docs/tutorials/notebook.md`` with the figures beside
it; ``--page`` writes the page of the outputs that are stored. The notebook runs in a kernel of its own, which is told
what to do over sockets in a folder that only the user can enter.
"""

from __future__ import annotations

import base64
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import nbformat
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbformat import NotebookNode

DOCS = Path(__file__).resolve().parent.parent / "docs"
NOTEBOOK = DOCS / "tutorials" / "notebook.ipynb"
PAGE = DOCS / "tutorials" / "notebook.md"
FIGURE = "images/notebook-{}.png"

CELL_S = 300
"""How long a cell may take, on a machine with much else to do, in seconds."""

FROM_TOP = "Download [the notebook](notebook.ipynb), or read its cells and their output below.\n"


def execute(notebook: NotebookNode) -> None:
    """Run all cells, and put into each what it shows; raises nbclient's CellExecutionError where one fails."""
    with tempfile.TemporaryDirectory(prefix="notebook-") as folder:
        kernel = AsyncKernelManager(
            kernel_name="python3",
            transport="ipc",
            ip=str(Path(folder, "kernel")),
            connection_file=str(Path(folder, "kernel.json")),
        )
        client = NotebookClient(notebook, km=kernel, timeout=CELL_S, resources={"metadata": {"path": folder}})
        client.execute()
    for cell in code_cells(notebook):
        del cell["metadata"]["execution"]  # the times of day


def code_cells(notebook: NotebookNode) -> Iterator[NotebookNode]:
    """Yield the cells that hold code."""
    yield from (cell for cell in notebook.cells if cell.cell_type == "code")


def shown_texts(cell: NotebookNode) -> str:
    """Return all text that a cell shows, standard output first."""
    parts = [output.get("text") or output.get("data", {}).get("text/plain", "") for output in cell.outputs]
    return "".join(f"{part.rstrip()}\n" for part in parts if part.strip())


def shown_figures(cell: NotebookNode) -> list[bytes]:
    """Return the figures that a cell shows, as PNG."""
    data = (output.get("data", {}) for output in cell.outputs)
    return [base64.b64decode(each["image/png"]) for each in data if "image/png" in each]


def write_page(notebook: NotebookNode) -> tuple[str, dict[str, bytes]]:
    """Return the page of a notebook with its outputs, and its figures by their paths below docs/."""
    parts: list[str] = []
    figures: dict[str, bytes] = {}
    for cell in notebook.cells:
        if cell.cell_type != "code":
            parts.append(cell.source + "\n")
            if len(parts) == 1:
                parts.append(FROM_TOP)
            continue
        parts.append(f"<!-- test: by tests/house/test_notebook.py -->\n```py\n{cell.source}\n```\n")
        drawn = shown_figures(cell)
        if drawn:
            for png in drawn:
                name = FIGURE.format(len(figures) + 1)
                figures[name] = png
                parts.append(f"![The figure that the cell draws](../{name})\n")
        elif text := shown_texts(cell):
            parts.append(f"```text\n{text}```\n")
    return "\n".join(parts), figures


def main(arguments: list[str]) -> int:
    """Run the notebook unless told not to, and write what comes of it; return the exit status."""
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    if "--page" not in arguments:
        execute(notebook)
        nbformat.write(notebook, NOTEBOOK)
    page, figures = write_page(notebook)
    PAGE.write_text(page, encoding="utf-8")
    for name, png in figures.items():
        (DOCS / name).write_bytes(png)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
