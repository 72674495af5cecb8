# Written by specwire from generator/support/field_docs.py. Do not edit; change that file and run `make generate`.
"""Docstrings of fields for ``help()``, which Python itself discards.

They are in the source of the package's codec, where editors find them. The source is read only when
the first docstring is looked up.
"""

from __future__ import annotations

import ast
import inspect
import sys
from itertools import pairwise


class FieldDocs(dict[str, str]):
    """Mapping of field to docstring for one class; `pydoc` and `inspect` look for it in ``__slots__``."""

    def __init__(self, module: str, class_name: str) -> None:
        super().__init__()
        self._source: tuple[str, str] | None = (module, class_name)

    def __contains__(self, name: object) -> bool:
        if self._source is not None:
            module, class_name = self._source
            self._source = None
            self.update(_docs_in(module, class_name))
        return super().__contains__(name)


def _docs_in(module: str, class_name: str) -> dict[str, str]:
    """Return the docstrings of a class's fields from the source; empty if there is no source."""
    try:
        tree = ast.parse(inspect.getsource(sys.modules[module]))
    except (KeyError, OSError, TypeError):
        return {}
    classes = (node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == class_name)
    return {
        field.target.id: inspect.cleandoc(doc.value.value)
        for class_ in classes
        for field, doc in pairwise(class_.body)
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
        if isinstance(doc, ast.Expr) and isinstance(doc.value, ast.Constant)
        if isinstance(doc.value.value, str)
    }
