"""How pages are read and run: blocks and notes, what output stands for what, and that a false page is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.page import Command, Note, blocks, commands
from tests.docs.session import PageError, first_words, fits, run_page

PAGE = """# A page

<!-- test: page-by tests/one.py -->
<!-- test: setup touch here -->
```console
$ ls  # what is there
here
$ cat <<'END'
in
END
in
$ printf 'a\\n' | \\
      cat
a
```

1. Nested:

    ```python title="runtime/x.py"
    x = 1
    ```
"""


@pytest.fixture
def page(tmp_path: Path) -> Path:
    """A page with a block of commands and a quotation."""
    path = tmp_path / "page.md"
    path.write_text(PAGE, encoding="utf-8")
    return path


def test_blocks_have_their_notes(page: Path) -> None:
    """Notes stand in front of their block, or in front of all that follow; a nested block loses its margin."""
    shown, quoted = blocks(page)
    assert (shown.language, shown.line) == ("console", 5)
    assert shown.notes == (Note("by", "tests/one.py"), Note("setup", "touch here"))
    assert (quoted.title, quoted.text, quoted.notes) == (
        "runtime/x.py",
        "x = 1\n",
        (Note("by", "tests/one.py"),),
    )


def test_commands_go_on_over_lines(page: Path) -> None:
    """Here-documents and lines that end in a backslash are of the command, what follows is its output."""
    assert list(commands(next(blocks(page)))) == [
        Command("ls  # what is there", ("here",)),
        Command("cat <<'END'\nin\nEND", ("in",)),
        Command("printf 'a\\n' | \\\n      cat", ("a",)),
    ]


def test_a_block_that_does_not_end_is_told(tmp_path: Path) -> None:
    """With its place."""
    path = tmp_path / "page.md"
    path.write_text("```console\n$ ls\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"page\.md:1: the block does not end"):
        list(blocks(path))


@pytest.mark.parametrize(
    ("wanted", "printed", "fit"),
    [
        (["a"], ["a"], True),
        (["a"], ["b"], False),
        (["a"], ["a", "b"], False),
        (["a", "…"], ["a", "b", "c"], True),
        (["…", "c"], ["a", "b", "c"], True),
        (["a", "…", "c"], ["a", "c"], True),
        (["took … ms"], ["took 3.2 ms"], True),
        (["took … ms"], ["took 3.2 s"], False),
        (["a  b"], ["a\tb"], True),
        (["a.c"], ["abc"], False),
    ],
)
def test_output_that_fits(wanted: list[str], printed: list[str], fit: bool) -> None:
    """Dots stand for anything; blanks count once; nothing else is a pattern."""
    assert fits(tuple(wanted), printed) is fit


@pytest.mark.parametrize(
    ("block", "told"),
    [
        ("$ echo a\nb\n", "prints\na\nand not\nb"),
        ("$ false\n", "status 1 and not 0"),
        ("$ exit 3\n", "the shell ended"),
    ],
)
def test_a_page_that_is_false_is_told(tmp_path: Path, block: str, told: str) -> None:
    """Another output, another status, a shell that is gone."""
    path = tmp_path / "page.md"
    path.write_text(f"```console\n{block}```\n", encoding="utf-8")
    with pytest.raises(PageError, match=told):
        run_page(path)


def test_a_page_that_is_true_is_run(tmp_path: Path) -> None:
    """In a folder of its own, in order; commands that set up the machine are left out."""
    path = tmp_path / "page.md"
    path.write_text(
        "<!-- test: setup echo x > a -->\n```console\n$ pip install nothing\n$ cd .\n$ cat a\nx\n```\n"
        "<!-- test: status 1 -->\n```console\n$ test -e b\n```\n"
        "<!-- test: needs no-such-program -->\n```console\n$ false\n```\n",
        encoding="utf-8",
    )
    assert run_page(path) == 3
    assert not Path("a").exists()


def test_first_words_end_where_another_command_begins() -> None:
    """Comments are no words."""
    assert first_words("specwire decode filemq aa | head  # why") == ["specwire", "decode", "filemq", "aa"]
