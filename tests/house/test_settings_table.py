"""The tables of settings in the documentation."""

from __future__ import annotations

import pytest

import settings_table
from tests.house.repository import ROOT


@pytest.mark.parametrize("page", settings_table.SECTIONS)
def test_page_has_every_setting(page: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The page is what scripts/settings_table.py writes: run `make generate` after a change."""
    path = ROOT / "docs/reference" / f"{page}.md"
    assert settings_table.main(["--check", str(path)]) == 0, capsys.readouterr().out


def test_rows() -> None:
    """Units, options with their values, and what changes at SIGHUP."""
    rows = settings_table.write_tables("filemq").splitlines()
    assert sum(row.startswith("| `report-every` |  | `600` seconds | ") for row in rows) == 2
    (folders,) = (row for row in rows if row.startswith("| `folders`"))
    assert folders.startswith("| `folders` | `FOLDER[=/PATH]` | required | ")
    (clients,) = (row for row in rows if row.startswith("| `clients` | `--clients FILE` |"))
    assert clients.endswith(" Changes at SIGHUP. |")
    forms = [row.split(" | ")[:2] for row in rows if row.startswith("| `log-format`")]
    assert forms == [["| `log-format`", r"`--log-format text\|json`"]] * 2
