"""The layout of the repository: top folders that are reached under one import name through links."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.house.repository import LINKED, ROOT, is_checkout, product_files, run_git


@pytest.mark.parametrize("folder", LINKED)
def test_link_leads_to_the_folder(folder: str) -> None:
    """Each link is relative, so that a clone works wherever it stands."""
    link = ROOT / "src/specwire" / folder
    assert link.is_symlink()
    assert Path(os.readlink(link)) == Path("../..") / folder
    assert link.resolve() == ROOT / folder


def test_there_are_no_other_links() -> None:
    """A reader meets every file once."""
    links = {path.name for path in (ROOT / "src/specwire").iterdir() if path.is_symlink()}
    assert links == set(LINKED)


def test_import_name_leads_here() -> None:
    """The installed package is this repository, found through the links."""
    code = "import specwire.generator, specwire.runtime; print(specwire.generator.__file__)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert Path(run.stdout.strip()).resolve() == ROOT / "generator/__init__.py"


@pytest.mark.skipif(not is_checkout(), reason="asks git about attributes")
def test_generated_files_are_marked_as_generated() -> None:
    """The pattern in .gitattributes covers generated/ and nothing else."""
    names = [str(path.relative_to(ROOT)) for path in product_files()]
    answer = run_git("check-attr", "-z", "--stdin", "linguist-generated", text="\0".join(names))
    fields = answer.split("\0")
    marked = {name for name, value in zip(fields[::3], fields[2::3], strict=False) if value == "set"}
    assert marked == {name for name in names if name.startswith("generated/")}


@pytest.mark.skipif(not is_checkout(), reason="asks git about attributes")
def test_no_line_end_is_changed_by_a_checkout() -> None:
    """Grammars are hashed and some test inputs end their lines with CR LF on purpose."""
    answer = run_git("check-attr", "-z", "text", "generator/ir.py", "grammars/any.abnf", "tests/golden/any")
    assert answer.split("\0")[2::3] == ["unset"] * 3
