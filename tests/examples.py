"""Number of examples for tests of properties: few in `make test`, more in `make fuzz`.

``SPECWIRE_FUZZ_COUNT`` is a percentage of the numbers that the tests state. `make test` uses 25 and
`make fuzz` 300; 10,000 takes a night. Each run draws other examples.
"""

from __future__ import annotations

import os

PERCENT = int(os.environ.get("SPECWIRE_FUZZ_COUNT", "25"))


def examples(stated: int) -> int:
    """Return the number of examples in this run of a test that states a number."""
    return max(1, stated * PERCENT // 100)
