"""`specwire flux broker` and `start` where they cannot be: one sentence, and the exit status that goes with it."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from specwire.runtime.cli.main import main

Run = Callable[..., tuple[object, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Return what runs `specwire flux`, and returns the exit status and standard error."""

    def run(*arguments: str) -> tuple[object, str]:
        with pytest.raises(SystemExit) as end:
            main(["flux", *arguments])
        out, err = capsys.readouterr()
        assert out == ""
        return end.value.code, err

    return run


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--timer=often=1",), "specwire: --timer often=1: NAME=SECONDS is wanted, with one of"),
        (("--timer=idle=soon",), "specwire: --timer idle=soon: 'soon' is no number of seconds"),
        (("--service=a=nosuch:Thing",), "specwire: --service a=nosuch:Thing: No module named 'nosuch'"),
        (("--service=a",), "specwire: --service a: NAME=MODULE:CLASS is wanted"),
    ],
)
def test_bad_options_are_told_once_in_a_sentence(run: Run, arguments: tuple[str, ...], sentence: str) -> None:
    """Nothing is started."""
    status, told = run("start", "--size=2", *arguments)
    assert (status, told[: len(sentence)]) == (2, sentence)
    assert told.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "status", "sentence"),
    [
        (("--bind=tcp://0.0.0.0:*", "--no-curve"), 2, "tcp://0.0.0.0:* would be open to anybody: use CURVE"),
        (("--bind=tcp://nonsense", "--no-curve"), 2, "tcp://nonsense would be open to anybody"),
        (("--bind=ipc:///nosuch/tree", "--no-curve"), 1, "cannot listen on ipc:///nosuch/tree"),
        (("--no-curve",), 2, "rank 0 has children, so it needs an endpoint for them"),
        (("--bind=ipc:///nosuch/tree",), 2, "--keys is wanted"),
        (("--bind=ipc:///nosuch/tree", "--keys=/nosuch"), 2, "/nosuch/instance.key_secret cannot be read"),
        (("--rank=1", "--no-curve"), 2, "rank 1 has a parent, so it needs the endpoint of it"),
        (("--rank=1", "--no-curve", "--parent=tcp://nonsense"), 1, "cannot connect to tcp://nonsense"),
        (("--rank=2", "--no-curve"), 2, "rank 2 is not in a tree of 2"),
        (("--size=1", "--local=/proc/nosuch/local"), 1, "cannot listen on local:///proc/nosuch/local"),
    ],
)
def test_broker_that_cannot_be_says_so_in_a_sentence(
    run: Run, arguments: tuple[str, ...], status: int, sentence: str
) -> None:
    """Whatever was opened before is closed again; nothing hangs, and no socket is left."""
    with tempfile.TemporaryDirectory(prefix="sw-") as folder:
        usual = ("--rank=0", "--size=2", f"--local={folder}/local")
        ended, told = run("broker", *usual, *arguments)
        assert ended == status
        assert told.startswith(f"specwire: {sentence}")
        assert told.count("\n") == 1
        assert list(Path(folder).iterdir()) == []
