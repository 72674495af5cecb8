"""Nothing that is broken ends the examination."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from specwire.runtime.doctor import examination
from specwire.runtime.doctor.examination import examine, findings_of
from specwire.runtime.doctor.finding import Finding, State

FINE = Finding("one", State.OK, "it is there")


def stumbling() -> Iterator[Finding]:
    """Find one thing, then stumble."""
    yield FINE
    raise RuntimeError("no home folder")


def test_what_stumbles_is_a_finding() -> None:
    """After what was found before."""
    fine, wrong = findings_of("sockets", stumbling)
    assert fine == FINE
    assert (wrong.name, wrong.state) == ("sockets", State.WRONG)
    assert wrong.found == "looking at it failed: RuntimeError: no home folder" and wrong.advice


def test_the_others_are_looked_at(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A package that cannot be imported, for one."""

    def broken() -> Finding:
        raise ImportError("bad magic number")

    monkeypatch.setattr(examination, "examine_codecs", broken)
    found = {finding.name: finding for finding in examine(tmp_path)}
    assert "bad magic number" in found["codecs"].found
    assert {"java", "curve", "disk", "hostname"} <= set(found)


def test_a_folder_that_is_gone(tmp_path: Path) -> None:
    """Somebody removed the folder that the user is in."""
    wrong = [finding for finding in examine(tmp_path / "gone") if finding.state is State.WRONG]
    assert [finding.name for finding in wrong] == ["resources"]
    assert "gone" in wrong[0].found
