"""The log of a proxy, a bridge or an instance: lines as they are, or objects, with what our modules log."""

from __future__ import annotations

import json
import logging

import pytest

from specwire.runtime.cli.plain_log import plain_log
from specwire.runtime.log.form import LogForm
from specwire.runtime.log.lines import OURS


def test_for_people_a_line_is_what_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    before = list(OURS.handlers)
    with plain_log("bridge", LogForm.TEXT) as say:
        say("bridging a to b")
        logging.getLogger("specwire.runtime.test").warning("not\nunderstood \x1b[2J")
    assert OURS.handlers == before
    assert capsys.readouterr() == ("", "bridging a to b\nnot\\nunderstood \\x1b[2J\n")


def test_for_programs_all_lines_are_objects(capsys: pytest.CaptureFixture[str]) -> None:
    before = list(OURS.handlers)
    with plain_log("bridge", LogForm.JSON) as say:
        say("bridging a to b")
        logging.getLogger("specwire.runtime.test").warning("not\nunderstood")
    assert OURS.handlers == before
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [(line["role"], line["level"], line["message"]) for line in lines] == [
        ("bridge", "info", "bridging a to b"),
        ("bridge", "warning", r"not\nunderstood"),
    ]
