"""Table of all diagnostic codes, with their meanings and corrected examples.

Each module holds the rows of one group. `specwire.generator.diagnostics` rejects a code that has no row.
docs/reference/diagnostics.md and ``specwire explain`` are generated from the rows.
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
"""The rows of each group, by the heading of the group."""

CODES: Mapping[str, Code] = MappingProxyType({row.code: row for rows in GROUPS.values() for row in rows})
"""The rows, by code."""
