"""Commands that are made from a settings struct: options, ``--set``, missing values, help."""

from __future__ import annotations

import os
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import msgspec
import pytest
import typer
from msgspec import Meta

from specwire.runtime.cli import main as root
from specwire.runtime.cli.settings_command import settings_command
from specwire.runtime.kernel.settings import Setting, describe_settings
from specwire.runtime.kernel.settings_groups import CaptureSettings
from tests.runtime.cli.commands import specwire


class Form(Enum):
    TEXT = "text"
    JSON = "json"


class ToySettings(msgspec.Struct, frozen=True, kw_only=True):
    """Serve toys."""

    folders: Annotated[tuple[str, ...], Setting(help="What to serve.", value="FOLDER", argument=True)]
    peers: Annotated[tuple[str, ...], Setting(help="Peers.", value="NAME")] = ()
    retries: Annotated[int, Meta(ge=0), Setting(help="How often.", value="NUMBER")] = 3
    form: Annotated[Form, Setting(help="Form.")] = Form.TEXT
    answer: Annotated[bool, Setting(help="Answer.")] = True
    loud: Annotated[bool, Setting(help="Loud.")] = False
    pause: Annotated[float, Meta(ge=0), Setting(help="How long.", value="SECONDS", rare=True)] = 1.5
    silent: Annotated[bool, Setting(help="Silent.", rare=True)] = True
    capture: CaptureSettings = CaptureSettings()


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Any:
    """A function that runs the command `specwire toy` and returns its settings, or its last line."""
    for name in [name for name in os.environ if name.startswith("SPECWIRE_")]:
        monkeypatch.delenv(name)
    seen: list[ToySettings] = []
    app = typer.Typer(rich_markup_mode=None)
    section = describe_settings("filemq.serve", ToySettings)
    app.command()(settings_command(section, lambda settings, _: seen.append(settings)))
    command = typer.main.get_command(app)
    monkeypatch.setattr(root, "load_command", lambda name: command)

    def run(*words: str) -> ToySettings | str:
        seen.clear()
        outcome = specwire(capfd, "doctor", *words)
        if outcome.status == 0:
            return seen[0] if seen else outcome.out
        assert outcome.status == 2 and not seen
        return outcome.err.splitlines()[-1]

    return run


def test_options_of_every_kind(toy: Any) -> None:
    assert toy("a,b", "c") == ToySettings(folders=("a,b", "c"))
    words = ("a", "--peers", "x", "--peers", "y", "--retries", "0", "--form", "json", "--no-answer", "--loud")
    assert toy(*words, "--capture", "out") == ToySettings(
        folders=("a",),
        peers=("x", "y"),
        retries=0,
        form=Form.JSON,
        answer=False,
        loud=True,
        capture=CaptureSettings(folder=Path("out")),
    )


def test_set(toy: Any) -> None:
    words = ("--set", "folders=a, b", "--set", "pause=2", "--set", "capture.keep=7d", "--set", "answer=false")
    assert toy(*words) == ToySettings(
        folders=("a", "b"), pause=2.0, answer=False, capture=CaptureSettings(keep="7d")
    )


def test_file_and_environment(toy: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "specwire.toml"
    file.write_text('[filemq.serve]\nfolders = ["a"]\nretries = 1\npause = 4\nloud = true\n')
    monkeypatch.setenv("SPECWIRE_CONFIG", str(file))
    monkeypatch.setenv("SPECWIRE_FILEMQ_SERVE_PAUSE", "5")
    assert toy("--retries", "2") == ToySettings(folders=("a",), retries=2, pause=5.0, loud=True)
    file.write_text('[filemq.serve]\nfolders = ["a"]\ncapture.keep = "7 moons"\n')
    assert toy().startswith(f"specwire: {file}:3: filemq.serve.capture.keep: '7 moons' is no age")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ((), "missing FOLDER"),
        (("a", "--retries", "-1"), "--retries: expected a whole number of at least 0, not '-1'"),
        (("a", "--retries", "x"), "--retries: expected a whole number of at least 0, not 'x'"),
        (("a", "--form", "xml"), "invalid value for '--form': 'xml' is not one of 'text', 'json'"),
        (("a", "--pause", "1"), "--pause is a setting without an option: use --set pause=VALUE"),
        (("a", "--no-pause"), "no such option: --no-pause"),
        (("a", "--no-silent"), "--no-silent is not an option: use --set silent=false"),
        (("a", "--capture.folder", "x"), "--capture.folder is not an option: use --capture"),
        (("--set", "folders="), "--set folders: expected at least one value"),
        (
            ("a", "--capture-keep", "7d"),
            "--capture-keep is a setting without an option: use --set capture.keep=VALUE",
        ),
        (("a", "--set", "pase=1"), "--set pase: unknown setting; did you mean 'pause'?"),
        (("a", "--set", "pause"), "--set: expected KEY=VALUE, not 'pause'"),
        (("a", "--loud", "--set", "loud=false"), "--set loud: loud is set twice"),
        (("a", "--set", "capture.max=big"), "--set capture.max: 'big' is no size"),
    ],
)
def test_faults_are_one_sentence(toy: Any, words: tuple[str, ...], sentence: str) -> None:
    assert toy(*words).startswith(f"specwire: {sentence}")


def test_help_has_common_settings_only(toy: Any) -> None:
    shown = toy("-h")
    assert "--retries NUMBER" in shown and "[default: 3]" in shown
    assert "--capture FOLDER" in shown and "--answer / --no-answer" in shown
    assert "--pause" not in shown and "--capture-keep" not in shown and "--set KEY=VALUE" in shown
