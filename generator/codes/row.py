"""One row of the table of diagnostic codes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Code:
    """A diagnostic code, with its title, its meaning and an example.

    `wrong` is the shortest input that causes the diagnostic, and `right` is the corrected input.
    For codes of the compiler both are grammars, compiled with `wrong_profile` and `right_profile`.
    A test compiles both: only the first gives the code.
    """

    code: str
    title: str
    meaning: str
    wrong: str = ""
    right: str = ""
    wrong_profile: str = ""
    right_profile: str = ""

    @property
    def severity(self) -> str:
        """``error`` if the code begins with E, else ``warning``."""
        return "error" if self.code.startswith("E") else "warning"
