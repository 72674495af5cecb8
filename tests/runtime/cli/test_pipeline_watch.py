"""`specwire pipeline watch` and `declare`: what they refuse before Spark is started, and what a watch shows."""

from __future__ import annotations

import io
import json
import os
import signal
from collections.abc import Mapping
from pathlib import Path

import msgspec
import pytest
from rich.console import Console

from specwire.runtime.cli.pipeline_watch import asked_of, asked_to_stop, write_line
from specwire.runtime.cli.pipeline_watch_view import Lines, Screen
from specwire.runtime.spark.live.work import Batch
from specwire.runtime.spark.pipeline.commit import begin
from specwire.runtime.spark.pipeline.manifest import Asked
from specwire.runtime.spark.pipeline.payloads import PayloadColumn
from specwire.runtime.spark.pipeline.summary import Summary, TapCount, Timeline
from tests.runtime.cli.commands import specwire

SUMMARY = Summary(
    capture="capture",
    taps=(TapCount("server-1-0", "filemq", 1500, 40_000, 2, 7, None, None),),
    types=(),
    errors=(),
    transfers=(),
    timeline=Timeline(1.0, ()),
    tables={},
    elapsed_s=0.0,
)
ALERT = {
    "raised": "2026-11-22T16:00:26+00:00",
    "kind": "silent",
    "protocol": "filemq",
    "tap": "server-1-0",
    "conversation": "c1",
    "text": "C sent nothing for 15.0 s; it is silent after 15 s",
}


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--capture", "nosuch", "--out", "out"), "nosuch: there is no such capture folder"),
        (
            ("--capture", "capture", "--out", "mine"),
            "mine: the folder is not empty and not an earlier output",
        ),
        (
            ("--capture", "capture", "--out", "capture/out"),
            "the output must lie apart from the capture folder",
        ),
        (("--capture", "capture", "--out", "out", "--protocol", "gopher"), "there is no protocol 'gopher'"),
        (
            ("--capture", "capture", "--out", "out", "--alert-lines", "capture"),
            "capture: alerts cannot be written there: Is a directory",
        ),
        (
            ("--capture", "capture", "--out", "out", "--payloads", "nosuch.toml"),
            "nosuch.toml cannot be read: No such file or directory",
        ),
        (
            ("--capture", "capture", "--out", "begun", "--protocol", "flux"),
            "begun with protocol filemq, not flux",
        ),
        (
            ("--capture", "capture", "--out", "begun", "--payloads", "profile.toml"),
            "profile.toml: it is of flux, and every message is read as filemq",
        ),
    ],
)
def test_a_slip_is_said_before_spark_is_started(
    options: tuple[str, ...], sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """And changes nothing."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "capture").mkdir()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("kept")
    (tmp_path / "profile.toml").write_text('name = "flux"\n')
    with begin(tmp_path / "begun") as run:
        run.commit(msgspec.structs.replace(run.before, asked=Asked(protocol="filemq")))
    ran = specwire(capfd, "pipeline", "watch", *options)
    assert ran.status == 2
    assert sentence in ran.err
    assert not (tmp_path / "out").exists()
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["notes.txt"]


def test_a_watch_goes_on_with_what_a_folder_was_begun_with(tmp_path: Path) -> None:
    """Its protocol and the columns of payloads; what is said now holds before that, and may be refused."""
    column = PayloadColumn("flux", "_payload_a", {"type": "struct", "fields": []}, "topic", "a", ())
    before = Asked(protocol="flux", layers=("typed",), payloads=(column,))
    with begin(tmp_path) as run:
        run.commit(msgspec.structs.replace(run.before, asked=before))
    assert asked_of(tmp_path, None, None) == before
    (tmp_path / "s.json").write_text('{"properties": {"id": {}}}')
    profile = tmp_path / "profile.toml"
    profile.write_text('[[payload]]\ntopic = "b"\njson-schema = "s.json"\n')
    asked = asked_of(tmp_path, None, [profile])
    assert (asked.layers, [one.column for one in asked.payloads]) == (("typed",), ["_payload_b"])


def test_a_declarative_pipeline_is_written(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """The files are named, and a second time they are left alone."""
    out = tmp_path / "pipeline"
    options = ("--capture", str(tmp_path), "--protocol", "filemq", "--out", str(out))
    ran = specwire(capfd, "pipeline", "declare", *options)
    assert ran.status == 0, ran.err
    assert ran.out.splitlines()[-1] == f"run it with {out / 'run'}"
    assert os.access(out / "run", os.X_OK)
    again = specwire(capfd, "pipeline", "declare", *options)
    assert again.status == 2 and "is not an empty folder" in again.err


def test_events_are_lines_of_json(capfd: pytest.CaptureFixture[str]) -> None:
    """A batch with the totals, answers, and an alert with its columns."""
    lines = Lines(write_line)
    with lines:
        lines.tell("starting Spark")
        lines.on_batch(Batch(3, 2, 1.23456, None), SUMMARY)
        lines.on_answers(None)
        lines.on_alert(ALERT)
        lines.on_wait()
    told = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    totals = {"messages": 1500, "undecoded": 2, "unknown": 0, "dropped": 7}
    assert told == [
        {"event": "batch", "batch": 3, "segments": 2, "took_s": 1.235, "lag_s": None, **totals},
        {"event": "answers"},
        {"event": "alert", **ALERT},
        {"event": "waiting"},
    ]


@pytest.mark.parametrize("terminal", [False, True])
def test_a_person_sees_totals_and_alerts(terminal: bool) -> None:
    """Markup in what a peer said is shown as it is."""
    shown = io.StringIO()
    odd: Mapping[str, object] = {**ALERT, "text": "[bold]odd[/bold]"}
    with Screen(Console(file=shown, force_terminal=terminal, width=120)) as screen:
        screen.tell("starting Spark")
        screen.on_alert(odd)
        screen.on_wait()
        screen.on_batch(Batch(0, 2, 1.0, 4.25), SUMMARY)
    text = shown.getvalue()
    assert "another run is at work in the folder, waiting for it" in text or terminal
    assert "2026-11-22T16:00:26+00:00 silent: filemq server-1-0 c1: [bold]odd[/bold]" in text
    assert "1,500 messages, 2 not decoded; 2 segments taken in, 4.2 s behind, alerts: 1" in text


def test_signals_ask_to_stop() -> None:
    """SIGINT and SIGTERM alike, any number of times; afterwards they are as they were."""
    before = signal.getsignal(signal.SIGTERM)
    with asked_to_stop() as stop:
        assert not stop.is_set()
        signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGINT)
        assert stop.is_set()
    assert signal.getsignal(signal.SIGTERM) is before
