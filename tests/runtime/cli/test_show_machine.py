"""`specwire show machine`: the dialogs of a protocol, as tables, drawings and JSON."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.generator.compiling import write
from tests.runtime.cli.commands import specwire

Capture = pytest.CaptureFixture[str]


def test_table_has_a_section_for_each_state(capfd: Capture) -> None:
    shown = specwire(capfd, "show", "machine", "filemq", "--reading", "strict")
    assert shown.status == 0
    rows = [re.split(" {2,}", line.rstrip()) for line in shown.out.splitlines()[2:] if line[0] != " "]
    assert rows == [
        ["START", "C Ohai", "C_OHAI"],
        ["C_OHAI", "S OhaiOk", "USE"],
        ["USE (may end)", "C Icanhaz", "C_ICANHAZ"],
        ["C_ICANHAZ", "S Srsly", "USE"],
        ["C_HUGZ", "S HugzOk", "USE"],
        ["S_HUGZ", "C HugzOk", "USE"],
        ["CLOSED", "nothing more"],
    ]


def test_both_readings_unless_one_is_chosen(capfd: Capture) -> None:
    shown = specwire(capfd, "show", "machine", "filemq", "--role", "S")
    assert "peering, strict reading, seen by S" in shown.out
    assert "peering, concurrent reading, seen by S" in shown.out
    assert "waiting C_ICANHAZ" in shown.out


def test_drawings_are_text_for_other_programs(capfd: Capture) -> None:
    arguments = ("show", "machine", "norfab", "--dialog", "worker", "--reading", "concurrent")
    mermaid = specwire(capfd, *arguments, "--format", "mermaid").out
    assert mermaid.startswith("stateDiagram-v2\n") and mermaid.count("stateDiagram-v2") == 1
    assert specwire(capfd, *arguments, "--format", "dot").out.startswith('digraph "worker" {\n')


def test_json_lists_every_transition(capfd: Capture) -> None:
    (view,) = json.loads(specwire(capfd, "show", "machine", "zre", "--reading", "strict", "--json").out)
    assert view["states"] == [{"name": "START", "final": False}, {"name": "USE", "final": True}]
    assert view["transitions"][0] == {"from": "START", "to": "USE", "sender": "P", "message": "Hello"}
    assert len(view["transitions"]) == 7


def test_role_leaves_the_dialogs_that_it_speaks_in(capfd: Capture) -> None:
    shown = json.loads(specwire(capfd, "show", "machine", "norfab", "--role", "W", "--json").out)
    assert {view["dialog"] for view in shown} == {"worker"}


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--role", "X"], "no role 'X'; there is C, S"),
        (["--dialog", "peer"], "no dialog 'peer'; filemq has peering"),
    ],
)
def test_what_is_not_there_is_told(capfd: Capture, options: list[str], sentence: str) -> None:
    shown = specwire(capfd, "show", "machine", "filemq", *options)
    assert (shown.status, shown.out) == (2, "")
    assert sentence in shown.err


def test_protocol_without_a_dialog_says_what_to_write(tmp_path: Path, capfd: Capture) -> None:
    write(tmp_path, "A = %x01\n", 'name = "demo"\nmessages = ["A"]\n')
    shown = specwire(capfd, "show", "machine", "demo", "--grammars", str(tmp_path))
    assert shown.status == 2
    assert "demo has no dialog: declare one under [[dialogs]] in its profile" in shown.err
