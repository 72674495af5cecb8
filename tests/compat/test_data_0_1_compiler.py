"""What the compiler of version 0.1.0 read and wrote: its profiles compile to the same protocols, its IR is read.

The profiles and grammars were copied from its repository; the IR is what ``specwire show ir NAME --json`` printed of them.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from specwire.generator.compare import compare
from specwire.generator.compare.ir_file import read_ir
from specwire.generator.pipeline import compile_protocol
from tests.house.repository import ROOT
from tests.runtime.cli.commands import specwire

DATA = ROOT / "tests/data/0.1"
PROFILES = sorted((DATA / "profiles").iterdir())
EDITIONS = sorted((DATA / "ir").iterdir())

MESSAGES = {
    "filemq": [
        "OHAI",
        "OHAI-OK",
        "ICANHAZ",
        "ICANHAZ-OK",
        "NOM",
        "CHEEZBURGER",
        "HUGZ",
        "HUGZ-OK",
        "KTHXBAI",
        "SRSLY",
        "RTFM",
        "WAT",
    ],
    "flux": ["request", "response", "event", "control"],
}
"""Names of the messages, as the specifications have them."""


def test_every_protocol_is_there() -> None:
    names = ["cmb1", "cmb1_json", "filemq", "flux", "libfilemq", "norfab", "norfab_ascii", "zmtp", "zre"]
    assert [path.name for path in PROFILES] == names
    assert [path.stem for path in EDITIONS] == ["filemq", "flux", "norfab"]


@pytest.mark.parametrize("folder", PROFILES, ids=lambda folder: folder.name)
def test_profile_compiles(folder: Path) -> None:
    assert compile_protocol(folder).protocol.name == folder.name


@pytest.mark.parametrize("file", EDITIONS, ids=lambda file: file.stem)
def test_ir_is_that_of_the_profile(file: Path) -> None:
    """Nothing changed between what 0.1.0 made of a profile and what is made of it now."""
    written = read_ir(file.read_bytes())
    comparison = compare(written, compile_protocol(DATA / "profiles" / file.stem).protocol)
    assert comparison.changes == ()
    assert comparison.verdict == "same"


@pytest.mark.parametrize("name", MESSAGES)
def test_ir_has_the_messages_of_the_specification(name: str) -> None:
    written = read_ir((DATA / f"ir/{name}.json").read_bytes())
    assert [message.name for message in written.messages] == MESSAGES[name]


@pytest.mark.parametrize("file", EDITIONS, ids=lambda file: file.stem)
def test_ir_file_is_an_edition_for_diff(file: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """As a user compares an edition that was put aside with that of today."""
    ran = specwire(capfd, "diff", str(file), str(DATA / "profiles" / file.stem))
    assert (ran.status, ran.err) == (0, "")
