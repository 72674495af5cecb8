"""The dissectors of our protocols, written once."""

from __future__ import annotations

from pathlib import Path

import pytest

from specwire.generator.pipeline import compile_protocol
from tests.house.repository import ROOT
from tests.wireshark.tshark import write_dissectors


@pytest.fixture(scope="session")
def dissectors(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The dissector of each protocol in `grammars/`, by its name."""
    folders = sorted(path for path in (ROOT / "grammars").iterdir() if path.is_dir())
    protocols = [compile_protocol(folder).protocol for folder in folders]
    paths = write_dissectors(tmp_path_factory.mktemp("dissectors"), protocols)
    return {path.stem: path for path in paths}
