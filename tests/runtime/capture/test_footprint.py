"""A peer that captures stays small: the Arrow libraries live in the writer process."""

from __future__ import annotations

import subprocess
import sys


def test_capture_imports_no_arrow() -> None:
    """Importing the tap loads neither pyarrow nor numpy."""
    script = "import sys, specwire.runtime.capture; print({'pyarrow', 'numpy', 'pandas'} & set(sys.modules))"
    ran = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=True
    )
    assert ran.stdout.strip() == "set()"
