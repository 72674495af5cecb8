"""Every diagnostic code, with what it means and what to write instead.

One row a code, in one module for each group. `specwire.generator.diagnostics` refuses a code that has no row
here; docs/reference/diagnostics.md and ``specwire explain`` are made from the rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from specwire.generator.codes.dialogs import DIALOGS
from specwire.generator.codes.documents import DOCUMENTS
from specwire.generator.codes.layouts import LAYOUTS
from specwire.generator.codes.names import NAMES
from specwire.generator.codes.profiles import PROFILES
from specwire.generator.codes.row import Code
from specwire.generator.codes.syntax import DIALECT, SYNTAX
from specwire.generator.codes.targets import TARGETS
from specwire.generator.codes.texts import TEXTS

GROUPS: Mapping[str, tuple[Code, ...]] = MappingProxyType(
    {
        "Syntax": SYNTAX,
        "Dialect": DIALECT,
        "Names": NAMES,
        "Dialogs": DIALOGS,
        "Layout": LAYOUTS,
        "Profile": PROFILES,
        "Rules that describe text": TEXTS,
        "Documents": DOCUMENTS,
        "Targets and templates": TARGETS,
    }
)
"""The rows by the heading under which people read them."""

CODES: Mapping[str, Code] = MappingProxyType({row.code: row for rows in GROUPS.values() for row in rows})
"""The rows by their code."""
