"""What the picture of the pipeline shows, read from the code itself: folders, imports, calls and entry points.

Nothing here is a list that somebody has to keep: a protocol, a pass, a target or a part of the runtime that comes or goes
changes the picture.
"""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
COMMAND_LINE = "cli"
VERBS = ("load", "read", "resolve", "find", "build", "infer")
"""How the names begin of what the pipeline goes on with; the others check, or spell."""


@dataclass(frozen=True)
class Structure:
    """All that is drawn."""

    protocols: tuple[str, ...]
    """Folders of grammars/."""
    steps: tuple[str, ...]
    """What generator/pipeline.py calls, in its order."""
    targets: tuple[str, ...]
    """Emitters, by their entry points."""
    needs: Mapping[str, frozenset[str]]
    """Parts of runtime/, but for the command line, and the parts that each imports."""


def read_structure() -> Structure:
    """Read the repository."""
    return Structure(
        tuple(sorted(path.parent.name for path in (ROOT / "grammars").glob("*/profile.toml"))),
        tuple(dict.fromkeys(_steps(ast.parse((ROOT / "generator/pipeline.py").read_text(encoding="utf-8"))))),
        _targets(),
        _needs(ROOT / "runtime"),
    )


def levels(needs: Mapping[str, frozenset[str]]) -> dict[str, int]:
    """Return the level of each part: 0 where it needs no other, else one above the highest that it needs.

    Of parts that need each other, the one that comes first in the alphabet is put above.
    """
    found: dict[str, int] = {}

    def level(part: str, above: tuple[str, ...]) -> int:
        if part not in found:
            below = [level(need, (*above, part)) for need in sorted(needs[part]) if need not in above]
            if part not in found:
                found[part] = max(below, default=-1) + 1
        return found[part]

    for part in sorted(needs):
        level(part, (part,))
    return found


def _steps(module: ast.Module) -> Iterator[str]:
    """Yield the functions of the generator that the pipeline calls and goes on with, as words."""
    passes = {
        alias.name
        for node in module.body
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("specwire.generator.")
        for alias in node.names
    }
    calls = [node for node in ast.walk(module) if isinstance(node, ast.Call)]
    # `ast.walk` goes breadth first: the order of the text is that of the steps.
    for call in sorted(calls, key=lambda node: (node.lineno, node.col_offset)):
        name = call.func.id if isinstance(call.func, ast.Name) else ""
        verb = name.partition("_")[0]
        if name in passes and verb in VERBS:
            yield name.replace("_", " ")


def _targets() -> tuple[str, ...]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return tuple(project["entry-points"]["specwire.emitters"])


def _needs(runtime: Path) -> dict[str, frozenset[str]]:
    parts = {path.parent.name for path in runtime.glob("*/__init__.py")} - {COMMAND_LINE}
    return {
        part: frozenset(
            {need for path in (runtime / part).rglob("*.py") for need in _imported(path)} & parts - {part}
        )
        for part in sorted(parts)
    }


def _imported(path: Path) -> Iterator[str]:
    """Yield the parts of runtime/ that a source imports."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        yield from (name.split(".")[2] for name in names if name.startswith("specwire.runtime."))
