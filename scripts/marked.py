"""Parts of a page that are written from the code, between two markers; the rest of the page is somebody's prose."""

from __future__ import annotations

import sys
from collections.abc import Callable
from difflib import unified_diff
from pathlib import Path


def put(page: str, name: str, text: str) -> str:
    """Return the page with `text` between the markers of `name`; raises ValueError where it has none."""
    begin, end = f"<!-- {name}: written by a script -->\n", f"<!-- end of {name} -->\n"
    before, found, rest = page.partition(begin)
    _, closed, after = rest.partition(end)
    if not (found and closed):
        raise ValueError(f"the page lacks {begin.strip()} or {end.strip()}")
    return f"{before}{begin}\n{text}\n{end}{after}"


def write_or_check(arguments: list[str], name: str, make: Callable[[], str]) -> int:
    """Write what `make` returns into the page that `arguments` name, or compare with ``--check``; return the exit status."""
    (path,) = (Path(argument) for argument in arguments if argument != "--check")
    old = path.read_text(encoding="utf-8")
    new = put(old, name, make())
    if "--check" not in arguments:
        if new != old:
            path.write_text(new, encoding="utf-8")
        return 0
    lines, wanted = old.splitlines(keepends=True), new.splitlines(keepends=True)
    difference = "".join(unified_diff(lines, wanted, str(path), "as the code is"))
    sys.stdout.write(difference)
    return 1 if difference else 0
