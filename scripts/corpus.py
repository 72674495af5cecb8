"""Count how many published documents `specwire import` reads and the compiler accepts.

    python scripts/corpus.py REPOSITORIES '*.bnf'
    python scripts/corpus.py REPOSITORIES '*rfcs/*/README.md' --newest

REPOSITORIES is a folder with git directories below it, with or without work trees. Each distinct
content that a path had in the history is one edition. An edition is imported and compiled with the
profile that the import writes. The table gives, for each path, the editions, those without a
grammar, those imported, those compiled, those of which ``--partial`` compiles some messages, and the
codes of the errors of all that do not compile.

With ``--together``, all documents are imported into one folder of grammars, in the order of their
paths, so that one can be the base of a later one.
"""

from __future__ import annotations

import argparse
import subprocess
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path, PurePath
from tempfile import TemporaryDirectory

from specwire.generator.diagnostics import Severity, SpecError
from specwire.generator.documents.editions import protocol_of
from specwire.generator.documents.importing import import_document
from specwire.generator.documents.store import write_imported
from specwire.generator.pipeline import compile_protocol

_DELETED = "0" * 40
_NO_GRAMMAR = "E702"


@dataclass(frozen=True, slots=True)
class Edition:
    """One distinct content of a path in a repository; `commit` is the newest that introduces it."""

    repository: Path
    path: str
    blob: str
    commit: str


@dataclass(slots=True)
class Row:
    """Counts for one path. `errors` has each code once per edition, and never that for no grammar."""

    editions: int = 0
    without: int = 0
    imported: int = 0
    compiled: int = 0
    partial: int = 0
    errors: Counter[str] = field(default_factory=Counter)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=Path, help="folder with git directories")
    parser.add_argument("patterns", nargs="+", help="shell patterns of paths in the repositories")
    parser.add_argument("--newest", action="store_true", help="only the newest edition of each path")
    parser.add_argument("--verbose", action="store_true", help="print the first error of each edition")
    parser.add_argument("--together", type=Path, help="an empty folder for all documents and grammars")
    given = parser.parse_args()
    rows: dict[str, Row] = {}
    seen: set[str] = set()
    for repository in find_repositories(given.folder):
        found = find_editions(repository, given.patterns, newest=given.newest)
        for edition in sorted(found, key=lambda edition: _in_order(edition.path)):
            if edition.blob in seen:
                continue
            seen.add(edition.blob)
            row = rows.setdefault(edition.path, Row())
            with TemporaryDirectory() as scratch:
                grammars = given.together or Path(scratch)
                count(edition, row, grammars, verbose=given.verbose)
    print_rows(rows)


def find_repositories(folder: Path) -> list[Path]:
    """Return the git directories below `folder`."""
    return sorted(head.parent for head in folder.rglob("HEAD") if (head.parent / "objects").is_dir())


def find_editions(repository: Path, patterns: list[str], *, newest: bool) -> Iterator[Edition]:
    """Yield the distinct contents of each path that matches a pattern, newest first."""
    options = ["log", "--all", "--raw", "--no-abbrev", "--no-renames", "-m", "--format=commit %H"]
    if newest:
        yield from _newest(repository, patterns)
        return
    commit = ""
    seen: set[str] = set()
    for line in _git(repository, *options).splitlines():
        if line.startswith("commit "):
            commit = line.removeprefix("commit ")
        elif line.startswith(":"):
            facts, _, path = line.partition("\t")
            blob = facts.split()[3]
            if blob not in seen | {_DELETED} and any(fnmatch(path, pattern) for pattern in patterns):
                seen.add(blob)
                yield Edition(repository, path, blob, commit)


def _newest(repository: Path, patterns: list[str]) -> Iterator[Edition]:
    for line in _git(repository, "ls-tree", "-r", "HEAD").splitlines():
        facts, _, path = line.partition("\t")
        if any(fnmatch(path, pattern) for pattern in patterns):
            yield Edition(repository, path, facts.split()[2], "HEAD")


def count(edition: Edition, row: Row, grammars: Path, *, verbose: bool) -> None:
    """Import and compile one edition in a folder of `grammars`, and add the result to `row`."""
    octets = _git_octets(edition.repository, "cat-file", "blob", edition.blob)
    row.editions += 1
    document = grammars / f"{edition.blob[:8]}-{edition.path.replace('/', '-')}"
    document.write_bytes(octets)
    folder = grammars / protocol_of(document)
    try:
        write_imported(import_document(document, folder.name, folder=folder), folder)
        row.imported += 1
        compile_protocol(folder, shown=folder.name)
        row.compiled += 1
    except SpecError as error:
        faults = [found for found in error.diagnostics if found.severity is Severity.ERROR]
        codes = {found.code for found in faults}
        row.without += _NO_GRAMMAR in codes
        row.errors.update(codes - {_NO_GRAMMAR})
        row.partial += folder.is_dir() and _has_sound_messages(folder)
        if verbose and _NO_GRAMMAR not in codes:
            print(f"{edition.path} {edition.blob[:8]}: {len(faults)} errors")
            print(f"    {faults[0].render()}".replace("\n", "\n    "))


def _has_sound_messages(folder: Path) -> bool:
    try:
        compile_protocol(folder, partial=True)
    except SpecError:
        return False
    return True


def print_rows(rows: dict[str, Row]) -> None:
    """Print a line for each path and one for all of them."""
    width = max(map(len, rows), default=4)
    print(f"{'path':<{width}}  editions  no grammar  imported  compiled  partial  errors")
    for path, row in sorted(rows.items(), key=lambda item: _in_order(item[0])):
        print(_line(path, row, width))
    total = Row()
    for row in rows.values():
        for name in ("editions", "without", "imported", "compiled", "partial"):
            setattr(total, name, getattr(total, name) + getattr(row, name))
        total.errors.update(row.errors)
    print(_line("all", total, width))


def _line(path: str, row: Row, width: int) -> str:
    codes = ", ".join(f"{code} {number}" for code, number in sorted(row.errors.items()))
    counts = f"{row.editions:>8}  {row.without:>10}  {row.imported:>8}  {row.compiled:>8}  {row.partial:>7}"
    return f"{path:<{width}}  {counts}  {codes}".rstrip()


def _in_order(path: str) -> tuple[tuple[int, str], ...]:
    """Return a key that sorts paths with numbers by their numbers."""
    return tuple((int(part) if part.isdigit() else 0, part) for part in PurePath(path).parts)


def _git(repository: Path, *arguments: str) -> str:
    return _git_octets(repository, *arguments).decode("utf-8", "surrogateescape")


def _git_octets(repository: Path, *arguments: str) -> bytes:
    command = ["git", f"--git-dir={repository}", *arguments]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout


if __name__ == "__main__":
    main()
