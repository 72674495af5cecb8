"""What `specwire pipeline run` prints of a summary."""

from __future__ import annotations

from pathlib import Path

import pytest

from specwire.runtime.cli.console import output
from specwire.runtime.cli.pipeline import show_summary
from tests.runtime.spark.report.summary import SUMMARY


@pytest.mark.parametrize(("columns", "by_tap"), [(120, True), (50, False)])
def test_columns_of_taps_are_there_where_they_have_room(
    columns: int, by_tap: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Else they would cut names and numbers in pieces; the report has them in any case."""
    monkeypatch.setattr(output(), "width", columns)
    show_summary(SUMMARY, Path("out"))
    told = capsys.readouterr().out
    head = next(line for line in told.splitlines() if "Message" in line and "Octets" in line)
    assert ("All taps" in head) == by_tap
    assert "(undecoded)" in told and "4.0 KiB" in told
