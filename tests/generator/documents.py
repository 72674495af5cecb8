"""Documents for the tests of import: small ones written here, and the published ones where they are at hand."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BESIDE = ("shared", "specs")
"""Where the published documents may be found: under the folder that holds the repository."""

PUBLISHED = {
    "filemq": "filemq-v2-spec_35.wikidot",
    "libfilemq": "filemq-libfilemq.bnf",
    "flux": "flux-v1-spec_3.rst",
    "cmb1": "flux-cmb1-spec_3.md.txt",
    "cmb1_json": "flux-cmb1-spec_3.adoc.txt",
    "norfab": "norfab-nfp.md",
    "zre": "zre-v2-spec_36.md",
    "zmtp": "zmtp-v3.1-spec_37.md",
}
"""The document of each protocol, by the name of the copy."""


def published(protocol: str) -> Path:
    """Return the published document of a protocol; skip the test where it is not at hand.

    Specifications are not part of the repository. The folder is named by SPECWIRE_SPECS.
    """
    named = os.environ.get("SPECWIRE_SPECS")
    folder = Path(named) if named else ROOT.parent.joinpath(*BESIDE)
    path = folder / PUBLISHED[protocol]
    if not path.is_file():
        pytest.skip(f"no copy of {PUBLISHED[protocol]}: set SPECWIRE_SPECS to the folder that holds it")
    return path


def write_document(folder: Path, text: str, name: str = "document.txt") -> Path:
    """Write a document of the test's own and return its path."""
    path = folder / name
    path.write_text(text, encoding="utf-8", newline="")
    return path
