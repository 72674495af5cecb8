"""The inputs that are kept: a folder for each target, a file for each input, named by the SHA-1 of its octets.

What the corpus holds runs code that nothing else in it runs, and is chosen anew by `tests.fuzz.grow`.

libFuzzer names what it finds in the same way, so its files can be put here as they are.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

CORPUS = Path(__file__).with_name("corpus")
FOUND = Path(__file__).with_name("found")
"""Inputs that showed a fault once: they stay, whatever they run."""


def inputs(target: str, corpus: Path = CORPUS) -> list[Path]:
    """Return the files of a target in the order of their names."""
    return sorted(path for path in (corpus / target).glob("*") if path.is_file())


def store(folder: Path, inputs: Iterable[bytes]) -> None:
    """Write `inputs` into a folder, which need not be there."""
    folder.mkdir(parents=True, exist_ok=True)
    for octets in inputs:
        (folder / name_of(octets)).write_bytes(octets)


def name_of(octets: bytes) -> str:
    """Return the name of the file that holds `octets`."""
    return hashlib.sha1(octets, usedforsecurity=False).hexdigest()
