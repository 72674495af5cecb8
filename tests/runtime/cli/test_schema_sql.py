"""`specwire schema --format sql`: a query that a person takes to a table of captured frames."""

from __future__ import annotations

import pytest

from specwire.generated.filemq.sql import EXPRESSIONS
from tests.runtime.cli.commands import specwire


def test_the_query_is_printed_whole(capfd: pytest.CaptureFixture[str]) -> None:
    outcome = specwire(capfd, "schema", "filemq", "--format", "sql")
    assert outcome.status == 0
    assert outcome.out.rstrip("\n") == EXPRESSIONS.query("captured")
    assert "FROM (SELECT *, frames AS _frames FROM captured)" in outcome.out
    assert "'credit', cast(conv(hex(substring(_sql_frame_0, 4, 8)), 16, 10) AS DECIMAL(20, 0))" in outcome.out


def test_a_protocol_without_expressions_says_so(capfd: pytest.CaptureFixture[str]) -> None:
    outcome = specwire(capfd, "schema", "zmtp", "--format", "sql")
    assert outcome.status == 2
    assert "zmtp has no messages that SQL expressions cover" in outcome.err
