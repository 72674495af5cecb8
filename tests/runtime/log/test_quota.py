"""Lines at a bounded rate, with a clock that the test moves."""

from __future__ import annotations

from specwire.runtime.log.quota import LINES, PER_S, Quota
from specwire.runtime.log.text import show


def test_what_is_left_out_is_counted_and_told_once() -> None:
    lines: list[str] = []
    now = 5.0
    quota = Quota(lines.append, lambda: now, "more were refused")
    for i in range(LINES + 1200):
        quota.write(f"line {i}")
    assert lines == [f"line {i}" for i in range(LINES)]
    now += PER_S
    quota.write("another")
    quota.write("one more")
    assert lines[LINES:] == ["1,200 more were refused in 10 s", "another", "one more"]
    now += PER_S
    quota.write("the last")
    assert lines[-1] == "the last" and lines.count("the last") == 1
    assert len(lines) == LINES + 4


def test_nothing_from_the_wire_forges_a_line() -> None:
    assert show("a\nrefused b\x1b[2J\u202e") == "a\\nrefused b\\x1b[2J\\u202e"
    assert show("Grüße, 東京") == "Grüße, 東京"
