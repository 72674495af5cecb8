"""Writer of docs/reference/diagnostics.md: one section for each code, in the order of the table.

``python -m specwire.generator.codes.page FILE`` writes the page. With ``--check`` it compares the
file with the table, prints the differences, and exits with status 1 if there are any.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from difflib import unified_diff
from pathlib import Path

from specwire.generator.codes import GROUPS
from specwire.generator.codes.row import Code

_HEAD = """\
# Diagnostics

Explains every code that specwire prints in square brackets, such as `error[E201]`. `specwire explain E201`
prints the section of one code. This page is generated from `generator/codes/`: edit the table there and run
`make generate`.

- Codes that begin with E are errors: nothing is generated.
- Codes that begin with W are warnings: they state how something was read.
- W4xx are assumptions. `specwire check --no-assumptions` counts them as errors.
"""
SHOWN_LINES = 16
"""Maximum number of lines shown of an example."""
SHOWN_CHARACTERS = 100


def write_page() -> str:
    """Return the page."""
    return "".join([_HEAD, *(_group(title, rows) for title, rows in GROUPS.items())])


def write_code(row: Code) -> str:
    """Return the section of one code, without its heading."""
    return "\n".join(_paragraphs(row))


def _group(title: str, rows: tuple[Code, ...]) -> str:
    sections = (f"\n### {row.code}: {row.title}\n\n{write_code(row)}" for row in rows)
    return f"\n## {title}\n" + "".join(sections)


def _paragraphs(row: Code) -> Iterator[str]:
    """Yield the meaning of the code, then the files in which its two examples differ."""
    yield f"{row.meaning}\n"
    profiles_differ = row.wrong_profile != row.right_profile
    if row.wrong == row.right and profiles_differ:
        yield from _block("With this grammar", "", row.wrong)
    for word, grammar, profile in (
        ("Wrong", row.wrong, row.wrong_profile),
        ("Right", row.right, row.right_profile),
    ):
        if row.wrong != row.right:
            yield from _block(word, "grammar.abnf", grammar)
        if profiles_differ:
            yield from _block(word, "profile.toml", profile)


def _block(word: str, file: str, text: str) -> Iterator[str]:
    if not text:
        yield f"{word}: no {file}.\n"
        return
    yield f"{word}, in {file}:\n" if file == "profile.toml" else f"{word}:\n"
    yield "".join(f"    {line}\n" for line in _lines(text))


def _lines(text: str) -> Iterator[str]:
    lines = text.encode("utf-8", "replace").decode("utf-8").splitlines()
    for line in lines[:SHOWN_LINES]:
        yield line if len(line) <= SHOWN_CHARACTERS else f"{line[:SHOWN_CHARACTERS]}…"
    if len(lines) > SHOWN_LINES:
        yield f"… ({len(lines) - SHOWN_LINES} more lines)"


def main(arguments: list[str]) -> int:
    """Write or compare the page; return the exit status."""
    path = Path(arguments[-1])
    page = write_page()
    if "--check" not in arguments:
        path.write_text(page, encoding="utf-8", newline="\n")
        return 0
    found = path.read_text(encoding="utf-8") if path.exists() else ""
    difference = unified_diff(
        found.splitlines(True), page.splitlines(True), f"{path}", f"{path} from the table"
    )
    sys.stdout.writelines(difference)
    return int(found != page)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
