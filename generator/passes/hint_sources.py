"""Parts of the reader of types that other passes use; they need not know the rest of it."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from specwire.generator.abnf.syntax import Reference, Rule
from specwire.generator.diagnostics import Span
from specwire.generator.passes.grammar import Grammar
from specwire.generator.passes.octets import Octets
from specwire.generator.profile.tables import LoadedProfile, TypeHint


class FaultReporter(Protocol):
    """The profile, and the report of faults."""

    @property
    def profile(self) -> LoadedProfile: ...

    def fault(self, code: str, span: Span, message: str, help: str) -> None: ...


class HintSource(FaultReporter, Protocol):
    """The declarations of the profile about rules."""

    def hint(self, rule: Rule | Reference | None, message: Rule | None = None) -> TypeHint: ...

    def has_fault(self, use: Reference) -> bool: ...


class SilentHintSource:
    """A source of hints that reports no fault: for a rule that is read again after its messages."""

    def __init__(self, source: HintSource) -> None:
        self.profile = source.profile
        self.hint = source.hint
        self.has_fault = source.has_fault

    def fault(self, code: str, span: Span, message: str, help: str) -> None:
        """Ignore a fault."""


class BitSource(FaultReporter, Protocol):
    """The octets and comments of rules, and the enumerations of the protocol."""

    @property
    def octets(self) -> Octets: ...

    def comment(self, rule: Rule) -> str: ...

    def note_enum(self, called: str, rule: Rule, members: tuple[tuple[str, int], ...]) -> str: ...


class TimeSource(FaultReporter, Protocol):
    """The rules of the grammar, and those of fields that are times."""

    @property
    def grammar(self) -> Grammar: ...

    @property
    def times(self) -> Collection[str]: ...
