"""What the passes over the fields of a run need of the reader of types."""

from __future__ import annotations

from typing import Protocol

from specwire.generator.abnf.syntax import Reference, Rule
from specwire.generator.diagnostics import Span
from specwire.generator.profile.tables import LoadedProfile, TypeHint


class HintSource(Protocol):
    """Part of the reader of types: the profile, and the report of faults."""

    @property
    def profile(self) -> LoadedProfile: ...

    def hint(self, rule: Rule | Reference | None, message: Rule | None = None) -> TypeHint: ...

    def fault(self, code: str, span: Span, message: str, help: str) -> None: ...
