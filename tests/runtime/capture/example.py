"""The capture of docs/how-to/capture.md: a server's tap of two days, and a client's; `python -m tests.runtime.capture.example FOLDER`."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.runtime.capture.folders import MONDAY_S, TUESDAY_S, put_segment


def write_example(folder: Path) -> None:
    """Write segments of a hundred messages each, one a second."""
    for number in range(60):
        put_segment(folder, number, range(100 * number, 100 * number + 100), MONDAY_S + 86_340 + number)
    for number in range(60, 90):
        put_segment(folder, number, range(100 * number, 100 * number + 100), TUESDAY_S + number, dropped=7)
    for number in range(3):
        seqs = range(20 * number, 20 * number + 20)
        put_segment(folder, number, seqs, TUESDAY_S + 3600 + number, tap="client-21-60aa00bb00dd2")


if __name__ == "__main__":
    write_example(Path(sys.argv[1]))
