"""`specwire flux simulate`: what it prints, and how it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from specwire.runtime.cli.flux_simulate_tables import show_time
from tests.runtime.cli.commands import specwire

STORY = """
title = "a short story"
duration_s = 8.0
links.latency_s = 0.001
[[rpc]]
clients = "5"
to = "6"
start_s = 1.0
count = 2
[[kill]]
at_s = 4.0
ranks = "1"
restart_after_s = 1.0
"""


@pytest.fixture
def story(tmp_path: Path) -> str:
    """A scenario file."""
    file = tmp_path / "story.toml"
    file.write_text(STORY, encoding="utf-8")
    return str(file)


def test_tables(capfd: pytest.CaptureFixture[str], story: str) -> None:
    """Four links there and back at a millisecond each; how long it took goes to standard error."""
    shown = specwire(
        capfd, "flux", "simulate", "--size", "7", "--fanout", "2", "--scenario", story, "--seed", "3"
    )
    assert shown.status == 0
    lines = [" ".join(line.split()) for line in shown.out.splitlines()]
    assert lines[0] == "a short story: 7 brokers, fan-out 2, 2 levels below rank 0, 8 s, seed 3"
    assert lines[1] == "start: all joined after 10 ms, rank 0 saw full after 11 ms"
    assert "RPC broker.ping to 6: 2 asked, 2 answered, no errors, 0 died" in shown.out
    assert "4 2 4 ms 4 ms 4 ms 4 ms 4 ms" in lines
    assert any(line.startswith("kill 4 s 1 0 0 s 0 - 1 ms") for line in lines)
    assert shown.err.startswith("simulated in ")


def test_json_is_the_same_in_every_run(capfd: pytest.CaptureFixture[str], story: str) -> None:
    """Of one seed, and whether or not messages become octets."""
    command = ("flux", "simulate", "--size", "7", "--scenario", story, "--json")
    first, again, octets = (specwire(capfd, *command, *more).out for more in ((), (), ("--wire",)))
    assert first == again == octets
    report = json.loads(first)
    assert (report["title"], report["size"], report["fanout"], report["height"]) == ("a short story", 7, 2, 2)


def test_without_a_scenario_the_tree_starts(capfd: pytest.CaptureFixture[str]) -> None:
    """And its pulse beats, for as long as is asked for."""
    shown = specwire(capfd, "flux", "simulate", "--size", "50", "--duration", "5", "--json")
    report = json.loads(shown.out)
    assert [(events["topic"], events["number"]) for events in report["events"]] == [("heartbeat.pulse", 2)]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--size", "6"), "rpc[0].to: 6 is not in a tree of the ranks 0 to 5"),
        (("--size", "7", "--duration", "0"), "--duration 0: more than 0 seconds are wanted"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    capfd: pytest.CaptureFixture[str], story: str, options: tuple[str, ...], told: str
) -> None:
    """With a sentence, and exit status 2."""
    ended = specwire(capfd, "flux", "simulate", "--scenario", story, *options)
    assert (ended.status, ended.out) == (2, "")
    assert ended.err.strip().endswith(told)


@pytest.mark.parametrize(
    ("time_s", "shown"),
    [
        (None, "-"),
        (0.0, "0 s"),
        (12.5, "12.5 s"),
        (0.99999, "1 s"),
        (0.9, "900 ms"),
        (0.0001234, "123.4 µs"),
        (2e-8, "0.02 µs"),
    ],
)
def test_times_have_the_unit_that_fits(time_s: float | None, shown: str) -> None:
    """Four digits of it."""
    assert show_time(time_s) == shown
