"""Manual pages: one for each command, with what ``--help`` says, and no warning from the programs that show them."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from shutil import which

import pytest

import man_pages
from command_table import leaf_commands, options_of

SECTIONS = ("NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "EXIT STATUS", "SEE ALSO")
RENDERERS = {
    "man": ("man", "-l"),
    "groff": ("groff", "-man", "-Tutf8", "-P-cbou", "-ww"),
}
"""Programs that show a page: each without colours, bold or underlining."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pages, as ``make man`` writes them."""
    folder = tmp_path_factory.mktemp("build") / "man"
    assert man_pages.main([str(folder)]) == 0
    return folder


def rendered(program: str, page: Path) -> str:
    """Return a page as its reader sees it, with the lines of each paragraph joined."""
    run = subprocess.run(
        [*RENDERERS[program], str(page)],
        env={"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "MANWIDTH": "100", "MANPAGER": "cat"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (run.returncode, run.stderr) == (0, "")
    return re.sub(r"[ \n]+", " ", run.stdout)


def test_every_command_has_a_page(folder: Path) -> None:
    """So do the program and its groups."""
    pages = {path.name for path in folder.iterdir()}
    leaves = {f"specwire-{words.replace(' ', '-')}.1" for words in leaf_commands()}
    assert len(leaves) > 60
    assert leaves | {"specwire.1", "specwire-filemq.1", "specwire-flux-overlay.1"} <= pages


def test_pages_have_all_sections(folder: Path) -> None:
    """In the order that manual pages have."""
    for path in folder.iterdir():
        found = re.findall(r"^\.SH (.+)$", path.read_text(encoding="ascii"), re.MULTILINE)
        assert tuple(name for name in found if name in SECTIONS) == SECTIONS, path.name


def test_pages_name_every_option(folder: Path) -> None:
    """All that ``--help`` shows."""
    for words, command in leaf_commands().items():
        text = (folder / f"specwire-{words.replace(' ', '-')}.1").read_text(encoding="ascii")
        names = [name for name, option in options_of(command).items() if not option.hidden]
        assert [name for name in names if name.replace("-", r"\-") not in text] == [], words


def test_pages_refer_to_pages(folder: Path) -> None:
    """SEE ALSO names no page that is not there."""
    for path in folder.iterdir():
        for name in re.findall(r"\\fB([^\n]+)\\fR\(1\)", path.read_text(encoding="ascii")):
            assert (folder / f"{name.replace(chr(92), '')}.1").is_file(), (path.name, name)


@pytest.mark.parametrize("program", RENDERERS)
def test_a_page_is_shown(folder: Path, program: str) -> None:
    """Its sections have the command's own words."""
    if which(program) is None:
        pytest.skip(f"{program} is not installed")
    page = rendered(program, folder / "specwire-decode.1")
    assert "specwire decode [OPTIONS] [PROTOCOL] SOURCE..." in page
    assert "--port NUMBER Read only connections with this TCP port. [1<=x<=65535]" in page
    assert "('' for an empty one)" in page
    assert "EXIT STATUS 0 Also where some messages are faulty or a file is cut off." in page
    assert "1 Where there is no message at all." in page
    assert "SEE ALSO specwire(1)" in page
    assert "specwire-filemq-serve(1)" in rendered(program, folder / "specwire-filemq.1")


@pytest.mark.skipif(which("groff") is None, reason="asks groff")
def test_no_page_has_a_warning(folder: Path) -> None:
    """A line that begins with a dot, or an escape that is not one, would be lost silently."""
    command = ["groff", "-man", "-Tutf8", "-ww", "-z", *map(str, sorted(folder.iterdir()))]
    run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (run.returncode, run.stderr) == (0, "")
