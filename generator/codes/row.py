"""One row of the table of diagnostic codes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Code:
    """What a code stands for.

    `wrong` is the shortest input that gives the diagnostic, `right` what to write instead; for a code of
    the compiler both are a grammar, which `wrong_profile` and `right_profile` go with. A test compiles them:
    the first gives the code, the second does not.
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
        """``error`` or ``warning``, as the first letter says."""
        return "error" if self.code.startswith("E") else "warning"
