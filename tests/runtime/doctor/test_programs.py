"""Python, codecs, Java: what there is, and what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from specwire.generated import zre
from specwire.runtime.doctor import programs
from specwire.runtime.doctor.finding import State


def java_that_says(folder: Path, words: str) -> Path:
    """Write a program that stands where Java would, and return the folder that JAVA_HOME has to name."""
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho '{words}' >&2\n")
    program.chmod(0o755)
    return folder


@pytest.mark.parametrize(
    ("words", "state", "told"),
    [
        ('openjdk version "21.0.1" 2023-10-17', State.OK, "Java 21.0.1 at "),
        ('openjdk version "11.0.2" 2019-01-15', State.WRONG, "Spark needs 17 or newer"),
        ('java version "1.8.0_202"', State.WRONG, "Java 1.8.0_202"),
        ("Segmentation fault", State.WRONG, "does not tell its version"),
    ],
)
def test_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str, state: State, told: str) -> None:
    """Versions before 9 begin with 1."""
    monkeypatch.setenv("JAVA_HOME", str(java_that_says(tmp_path, words)))
    finding = programs.examine_java()
    assert finding.state is state and told in finding.found
    assert ("17" in finding.advice) is (state is State.WRONG)


def test_without_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Codecs and peers work; the sentence says where it was looked for."""
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    finding = programs.examine_java()
    assert finding.state is State.ABSENT
    assert f"below JAVA_HOME ({tmp_path})" in finding.found and "openjdk-17" in finding.advice


def test_home_is_not_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What doctor prints is pasted into reports."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("JAVA_HOME", str(java_that_says(tmp_path / "java", 'openjdk version "17.0.1"')))
    assert programs.examine_java().found == "Java 17.0.1 at ~/java/bin/java"


def test_codecs_in_python_on_demand(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reason is the variable, and so is the remedy."""
    monkeypatch.setenv("SPECWIRE_PURE", "1")
    monkeypatch.setattr(programs, "why_pure", lambda _: "SPECWIRE_PURE=1 is set")
    finding = programs.examine_codecs()
    assert (finding.state, finding.advice) == (State.ABSENT, "unset SPECWIRE_PURE")


def test_codecs_that_are_not_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each package has its reason; without a compiler that comes first."""
    monkeypatch.delenv("SPECWIRE_PURE", raising=False)
    monkeypatch.setenv("CC", "no-such-compiler")
    monkeypatch.setattr(programs, "why_pure", lambda name: "not compiled" if name == zre.__name__ else "")
    finding = programs.examine_codecs()
    assert finding.state is State.ABSENT
    assert "packages in Python (zre: not compiled)" in finding.found
    assert finding.advice.startswith("install a C compiler")


def test_codecs_in_c(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is to be done."""
    monkeypatch.setattr(programs, "why_pure", lambda _: "")
    finding = programs.examine_codecs()
    assert (finding.state, finding.advice) == (State.OK, "") and finding.found.endswith("packages in C")


def test_sockets_in_python_on_demand(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reason is the variable, and so is the remedy."""
    monkeypatch.setenv("SPECWIRE_PURE", "1")
    monkeypatch.setattr(programs, "why_pure", lambda _: "SPECWIRE_PURE=1 is set")
    finding = programs.examine_transport()
    assert (finding.state, finding.advice) == (State.ABSENT, "unset SPECWIRE_PURE")


def test_sockets_that_are_not_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """pyzmq does it as well; the package that is asked about is the transport's own."""
    monkeypatch.delenv("SPECWIRE_PURE", raising=False)
    monkeypatch.setattr(programs, "why_pure", {"specwire.runtime.transport": "not compiled"}.__getitem__)
    finding = programs.examine_transport()
    assert finding.state is State.ABSENT and "through pyzmq" in finding.found
    assert finding.found.endswith("(not compiled)") and "make setup" in finding.advice


def test_sockets_in_c(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "why_pure", lambda _: "")
    finding = programs.examine_transport()
    assert (finding.name, finding.state, finding.advice) == ("transport", State.OK, "")


def test_jar_that_is_of_other_sources(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark decodes all the same."""
    monkeypatch.setattr(programs, "jar_trouble", lambda: "it is old: run `make jar`")
    finding = programs.examine_jar()
    assert finding.state is State.ABSENT and "decodes with Arrow" in finding.found
