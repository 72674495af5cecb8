"""The layout of the repository: top folders that are reached under one import name through links."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.house.repository import LINKED, ROOT, is_checkout, is_support, product_files, run_git

SUPPORT = sorted(
    {path.relative_to(ROOT / "generator/support").parts[0] for path in product_files() if is_support(path)}
)
"""Modules and folders of the support library, which all generated packages share."""


@pytest.mark.parametrize("folder", LINKED)
def test_link_leads_to_the_folder(folder: str) -> None:
    """Each link is relative, so that a clone works wherever it stands."""
    link = ROOT / "src/specwire" / folder
    assert link.is_symlink()
    assert Path(os.readlink(link)) == Path("../..") / folder
    assert link.resolve() == ROOT / folder


@pytest.mark.skipif(not is_checkout(), reason="asks git about links")
def test_there_are_no_other_links() -> None:
    """Links lead to the top folders and to the support library, and nowhere else."""
    listed = run_git("ls-files", "--stage", "-z").split("\0")
    links = {line.partition("\t")[2] for line in listed if line.startswith("120000 ")}
    assert links == {f"src/specwire/{name}" for name in LINKED} | {f"generated/{name}" for name in SUPPORT}


@pytest.mark.parametrize("name", SUPPORT)
def test_link_leads_to_the_support_library(name: str) -> None:
    link = ROOT / "generated" / name
    assert link.is_symlink()
    assert Path(os.readlink(link)) == Path("../generator/support") / name
    assert link.exists()


def test_ruff_checks_the_support_library_once() -> None:
    """Ruff does not follow links to folders, but it reads linked files."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["ruff"]
    excluded = {name for name in settings["extend-exclude"] if name.startswith("generated/")}
    assert excluded == {f"generated/{name}" for name in SUPPORT if name.endswith(".py")}


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
    answer = run_git(
        "check-attr", "-z", "text", "generator/pipeline.py", "grammars/any.abnf", "tests/golden/any"
    )
    assert answer.split("\0")[2::3] == ["unset"] * 3
