"""A package's codec without its checks: what validation costs, measured on the same code less what refuses.

The variant is made of the generated source: every ``if`` that does no more than raise is left out. What is left
takes frames apart, within the limits, as if nobody could ever send anything wrong.
"""

from __future__ import annotations

import ast
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any


class _WithoutChecks(ast.NodeTransformer):
    """Leaves out the checks, and counts them."""

    def __init__(self) -> None:
        self.left_out = 0

    def visit_If(self, node: ast.If) -> Any:
        self.generic_visit(node)
        if not node.orelse and _only_raises(node):
            self.left_out += 1
            return None
        return node


def _only_raises(node: ast.If) -> bool:
    return len(node.body) == 1 and isinstance(node.body[0], ast.Raise)


def unchecked(package: str) -> ModuleType:
    """Return a package's codec without checks; a module of its own beside the real one."""
    codec = import_module(f"specwire.generated.{package}.codec")
    assert codec.__file__ is not None
    tree = ast.parse(Path(codec.__file__).read_text(encoding="utf-8"))
    transformer = _WithoutChecks()
    for function in tree.body:
        if isinstance(function, ast.FunctionDef) and function.name.startswith(("_decode", "_read")):
            transformer.visit(function)
    assert transformer.left_out, package
    name = f"specwire.generated.{package}.unchecked"
    module = ModuleType(name)
    module.__package__ = f"specwire.generated.{package}"
    sys.modules[name] = module
    exec(compile(ast.fix_missing_locations(tree), name, "exec"), module.__dict__)  # noqa: S102
    return module
