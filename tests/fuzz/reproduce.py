"""Run one input through its target, without atheris: ``python -m tests.fuzz.reproduce TARGET FILE``.

It ends with the traceback of what was found, or with a word that nothing was.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from tests.fuzz.pieces import split
from tests.fuzz.targets import TARGETS


def main(arguments: Sequence[str]) -> int:
    """Check the file that the command line names; return the exit status."""
    if len(arguments) != 2 or arguments[0] not in TARGETS:
        print(
            f"usage: python -m tests.fuzz.reproduce TARGET FILE; targets: {', '.join(TARGETS)}",
            file=sys.stderr,
        )
        return 2
    target, octets = TARGETS[arguments[0]], Path(arguments[1]).read_bytes()
    for piece in split(octets) if target.depth else [octets]:
        print(
            f"frames: {[frame.hex() for frame in split(piece)]}" if target.depth > 1 else f"input: {piece!r}"
        )
    target.prepare()(octets)
    print("the check finds nothing wrong")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
