"""Files that are no TOML, whoever asks for them: what is wrong is said, and no file is read without an end."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from specwire.runtime.filemq import access
from specwire.runtime.flux.simulate import scenario_file
from specwire.runtime.flux.topology import Tree
from specwire.runtime.kernel.settings_sources import ConfigurationError, read_tables
from specwire.runtime.norfab.security import tablefile
from specwire.runtime.toml_file import LARGEST_OCTETS, TomlFileError, read_toml


@pytest.mark.parametrize(
    ("octets", "reason"),
    [
        (b"a = [", "is not TOML: "),
        (b"a = '\xff'", "is not UTF-8, as TOML has to be, from octet 5 on; save it as that"),
        (b"#" * (LARGEST_OCTETS + 1), "is larger than 16,777,216 octets, which no such file is"),
        (b"a = " + b"[" * 100_000, "is not TOML that can be read: it is nested too deeply"),
    ],
    ids=["no TOML", "no UTF-8", "large", "deep"],
)
def test_a_file_that_cannot_be_read(tmp_path: Path, octets: bytes, reason: str) -> None:
    file = tmp_path / "some.toml"
    file.write_bytes(octets)
    with pytest.raises(TomlFileError) as caught:
        read_toml(file)
    assert str(caught.value).startswith(reason)


def test_tables(tmp_path: Path) -> None:
    file = tmp_path / "some.toml"
    file.write_text("[a]\nb = 'ü'\n")
    assert read_toml(file) == {"a": {"b": "ü"}}


@pytest.mark.parametrize(
    ("read", "error"),
    [
        (read_tables, ConfigurationError),
        (access.load_clients, access.AccessError),
        (lambda file: scenario_file.load_scenario(file, Tree(3, 2)), scenario_file.ScenarioError),
        (tablefile.load_table, tablefile.AccessError),
    ],
)
def test_a_file_without_an_end(read: Callable[[Path], object], error: type[Exception]) -> None:
    with pytest.raises(error, match="is larger than 16,777,216 octets"):
        read(Path("/dev/zero"))
