"""How many examples a property is tried with: few in an everyday run, each of which draws others, and more when asked.

``SPECWIRE_FUZZ_COUNT`` is in per cent of an everyday run's: `make fuzz` asks for 300, ten thousand is as many as a night has.
"""

from __future__ import annotations

import os

PERCENT = int(os.environ.get("SPECWIRE_FUZZ_COUNT", "100"))


def examples(everyday: int) -> int:
    """Return the number of examples of this run for a property that is tried with so many every day."""
    return max(1, everyday * PERCENT // 100)
