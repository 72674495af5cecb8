"""Which programs on a machine are interpreters that wheels are built for."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import audit
from interpreters import Interpreter, ask, find_interpreters


def fake_python(
    folder: Path, name: str, implementation: str, version: str, level: str, *, free: bool
) -> Path:
    """Write a program that answers as an interpreter would."""
    folder.mkdir(parents=True, exist_ok=True)
    answer = f'["{implementation}", [{version}], {str(free).lower()}, "{level}"]'
    (folder / name).write_text(f"#!/bin/sh\necho '{answer}'\n")
    (folder / name).chmod(0o755)
    return folder / name


def test_this_interpreter_is_recognised() -> None:
    """Its version, and the tag of its wheels."""
    known = ask(Path(sys.executable))
    assert known == Interpreter(sys.version_info[:3], Path(sys.executable))
    assert known.tag == f"cp{sys.version_info.major}{sys.version_info.minor}"


def test_the_newest_of_each_version_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the path and from other places; oldest version first."""
    onpath, other = tmp_path / "path", tmp_path / "versions"
    fake_python(onpath, "python3.21", "CPython", "3, 21, 4", "final", free=False)
    newer = fake_python(other / "3.21.10/bin", "python3", "CPython", "3, 21, 10", "final", free=False)
    last = fake_python(other / "3.22.0/bin", "python3", "CPython", "3, 22, 0", "final", free=False)
    monkeypatch.setenv("PATH", str(onpath))
    found = find_interpreters([f"{other}/*/bin/python3"])
    assert [(each.version, each.program) for each in found if each.version > (3, 20)] == [
        ((3, 21, 10), newer),
        ((3, 22, 0), last),
    ]


@pytest.mark.parametrize(
    ("implementation", "version", "level", "free"),
    [
        ("PyPy", "3, 11, 9", "final", False),
        ("CPython", "3, 10, 13", "final", False),
        ("CPython", "3, 15, 0", "candidate", False),
        ("CPython", "3, 14, 0", "final", True),
    ],
)
def test_others_are_left_out(
    tmp_path: Path, implementation: str, version: str, level: str, free: bool
) -> None:
    """Another implementation, an old version, a pre-release, a build without the global lock."""
    assert ask(fake_python(tmp_path, "python3", implementation, version, level, free=free)) is None


def test_what_is_no_interpreter_is_left_out(tmp_path: Path) -> None:
    """A program that prints something else, and one that cannot be run."""
    (tmp_path / "python3").write_text("#!/bin/sh\necho hello\n")
    assert ask(tmp_path / "python3") is None
    (tmp_path / "python3").chmod(0o755)
    assert ask(tmp_path / "python3") is None


@pytest.mark.parametrize(
    ("dependencies", "status", "said"),
    [
        ([{"name": "a", "skip_reason": "not found"}], 3, "nothing was checked"),
        ([{"name": "a", "version": "1", "vulns": []}], 0, "1 libraries checked, 0 vulnerabilities"),
        (
            [{"name": "a", "version": "1", "vulns": [{"id": "CVE-1", "fix_versions": ["1.1", "2"]}]}],
            1,
            "a 1: CVE-1, fixed in 1.1, 2",
        ),
    ],
)
def test_an_audit_says_whether_anything_was_checked(
    dependencies: list[dict[str, object]], status: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """An index without advisories is not a clean result."""
    assert audit.report(dependencies) == status
    assert said in "".join(capsys.readouterr())
