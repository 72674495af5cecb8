"""`specwire doctor`: a line for each thing, its advice below, and a status that a script can go by."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from specwire.runtime.doctor import examination
from specwire.runtime.doctor.finding import Finding, State
from tests.runtime.cli.commands import specwire

PYTHON = Finding("python", State.OK, "CPython [3.11]")
JAVA = Finding("java", State.ABSENT, "no java on the path", "install Java 17")
ARROW = Finding("arrow", State.WRONG, "cannot be imported", "pip install --force-reinstall pyarrow")


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> list[Finding]:
    """What the examination finds; a test puts its findings there."""
    findings: list[Finding] = []

    def examine(folder: Path) -> Iterator[Finding]:
        yield from findings

    monkeypatch.setattr(examination, "examine", examine)
    return findings


def test_lines_for_a_person(found: list[Finding], capfd: pytest.CaptureFixture[str]) -> None:
    """What is absent is no failure; what is found is printed as it is, brackets included."""
    found += [PYTHON, JAVA]
    outcome = specwire(capfd, "doctor")
    assert (outcome.status, outcome.err) == (0, "")
    assert outcome.out.splitlines() == [
        "python  ok      CPython [3.11]",
        "java    absent  no java on the path",
        "                → install Java 17",
    ]


def test_json_for_a_program(found: list[Finding], capfd: pytest.CaptureFixture[str]) -> None:
    """The words are the same; no advice is left out."""
    found += [PYTHON, JAVA]
    outcome = specwire(capfd, "doctor", "--json")
    assert json.loads(outcome.out) == {
        "well": True,
        "lacking": [],
        "findings": [
            {"name": "python", "state": "ok", "found": "CPython [3.11]"},
            {"name": "java", "state": "absent", "found": "no java on the path", "advice": "install Java 17"},
        ],
    }


@pytest.mark.parametrize(
    ("findings", "arguments", "lacking"),
    [
        ([PYTHON, JAVA], ["--need", "java"], ["java"]),
        ([PYTHON, JAVA], ["--need", "python"], []),
        ([PYTHON, ARROW], [], ["arrow"]),
    ],
)
def test_status_tells_what_is_lacking(
    findings: list[Finding],
    arguments: list[str],
    lacking: list[str],
    found: list[Finding],
    capfd: pytest.CaptureFixture[str],
) -> None:
    """A script that needs Java asks for it by name."""
    found += findings
    outcome = specwire(capfd, "doctor", *arguments, "--json")
    assert (outcome.status, json.loads(outcome.out)["lacking"]) == (1 if lacking else 0, lacking)


def test_unknown_need(found: list[Finding], capfd: pytest.CaptureFixture[str]) -> None:
    """One sentence, with the name that was probably meant."""
    found += [PYTHON, JAVA]
    outcome = specwire(capfd, "doctor", "--need", "jav")
    assert (outcome.status, outcome.out) == (2, "")
    assert outcome.err == "specwire: --need jav: doctor looks at python, java; did you mean 'java'?\n"


def test_this_machine_is_well(capfd: pytest.CaptureFixture[str]) -> None:
    """Where the tests run, everything that they need is there; every finding that is not ok says what to do."""
    outcome = specwire(capfd, "doctor", "--json")
    findings = json.loads(outcome.out)["findings"]
    assert {"python", "libraries", "codecs", "arrow", "java", "curve", "ports", "disk"} <= {
        finding["name"] for finding in findings
    }
    assert all(finding["state"] == "ok" or finding.get("advice") for finding in findings)
