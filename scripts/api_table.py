"""The table of public names in docs/reference/api.md, written from the ``__all__`` of the modules that programs may import.

``python scripts/api_table.py docs/reference/api.md`` writes what stands between the two markers; with ``--check`` it compares.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import import_module
from inspect import getdoc, isclass, isfunction
from pathlib import Path

from marked import write_or_check

RUNTIME = Path(__file__).resolve().parent.parent / "runtime"


def public_modules() -> list[str]:
    """Return the packages below specwire.runtime that say by an ``__all__`` what programs may import from them."""
    sources = (
        path for path in RUNTIME.rglob("__init__.py") if "\n__all__ = " in path.read_text(encoding="utf-8")
    )
    return sorted(".".join(("specwire.runtime", *path.parent.relative_to(RUNTIME).parts)) for path in sources)


def page_of(module: str) -> str:
    """Return the name of the page that documents a public module: ``runtime-norfab-client``."""
    return module.removeprefix("specwire.").replace(".", "-")


def write_table() -> str:
    """Return a section for each module, with a row for each of its names."""
    return "\n".join("".join(_section(name)) for name in public_modules())


def _section(name: str) -> Iterator[str]:
    module = import_module(name)
    yield f"**[`{name}`](api/{page_of(name)}.md)**\n\n| name | |\n|---|---|\n"
    for word in module.__all__:
        cell = _first_sentence(getattr(module, word)).replace("|", "\\|")
        yield f"| `{word}` | {cell} |\n"


def _first_sentence(thing: object) -> str:
    """Return how the docstring of a class or function begins; a type that has no name of its own is said to be one."""
    text = (getdoc(thing) or "") if isclass(thing) or isfunction(thing) else "A type, for annotations."
    words = " ".join(text.partition("\n\n")[0].split())
    return words.replace("``", "`").removesuffix(":")


def main(arguments: list[str]) -> int:
    """Write or compare the page that is named; return the exit status."""
    return write_or_check(arguments, "names", write_table)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
