"""Every command that takes a protocol knows packages of the user's, by --packages, --grammars and SPECWIRE_PACKAGES."""

from __future__ import annotations

import builtins
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from specwire.runtime.cli.packages import use_packages
from specwire.runtime.packages import REGISTRY, load_package, package_names
from tests.runtime.cli.commands import specwire
from tests.runtime.own_packages import (
    LARGE,
    LARGE_QUOTE,
    write_grammar,
    write_package,
    write_ticker_capture,
)

PACKAGE = ("--packages", "./wire")
GRAMMARS = ("--grammars", "grammars")


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Give the working directory: a project with a grammar, its package and a capture."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    write_grammar(tmp_path / "grammars")
    write_package(tmp_path / "wire")
    write_ticker_capture(tmp_path / "capture")
    yield tmp_path
    for name in [name for name in sys.modules if name.partition(".")[0] == "wire"]:
        del sys.modules[name]


@pytest.mark.parametrize("options", [PACKAGE, GRAMMARS])
def test_each_command_knows_the_protocol(options: tuple[str, str], capfd: pytest.CaptureFixture[str]) -> None:
    """decode of a message and of a capture that states it, encode, schema in every format."""
    octets = LARGE_QUOTE[0].hex()
    decoded = specwire(capfd, "decode", "ticker", octets, "--json", *options)
    assert json.loads(decoded.out)["fields"] == {"symbol": "ACME", "price": LARGE}, decoded.err
    lines = specwire(capfd, "decode", "capture", "--json", *options).out.splitlines()
    assert [json.loads(line)["message"] for line in lines] == ["Subscribe", "Quote", "Quote"]
    encoded = specwire(capfd, "encode", "ticker", "Quote", "symbol=ACME", f"price={LARGE}", *options)
    assert encoded.out.split() == [octets], encoded.err
    for format in ("ddl", "tree", "arrow", "json-schema", "avro"):
        shown = specwire(capfd, "schema", "ticker", "--format", format, *options)
        assert shown.status == 0 and "price" in shown.out, shown.err


@pytest.mark.parametrize(
    "command",
    [
        ("peer", "ticker", "--role", "C", "--connect", "ftp://nowhere"),
        ("replay", "nosuch", "--side", "C", "--to", "tcp://127.0.0.1:9"),
        ("capture", "proxy", "--to", "tcp://nowhere", "--capture", "c", "--protocol", "ticker"),
        ("pipeline", "run", "--capture", "nosuch", "--out", "out"),
        ("pipeline", "watch", "--capture", "nosuch", "--out", "out"),
        ("pipeline", "declare", "--capture", "capture", "--protocol", "ticker", "--out", "declared"),
    ],
)
def test_the_other_commands_take_the_option(
    command: tuple[str, ...], capfd: pytest.CaptureFixture[str]
) -> None:
    """None says that it does not know the option, or the protocol."""
    outcome = specwire(capfd, *command, *PACKAGE)
    assert "there is no protocol" not in outcome.err and "No such option" not in outcome.err
    assert outcome.status == (0 if "declare" in command else 2), outcome.err


def test_a_module_here_and_the_environment(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A module's name is looked for in the working directory, too."""
    octets = LARGE_QUOTE[0].hex()
    assert specwire(capfd, "decode", "ticker", octets, "--packages", "wire").status == 0
    for name in [name for name in sys.modules if name.partition(".")[0] == "wire"]:
        del sys.modules[name]
    outcome = specwire(capfd, "decode", "ticker", octets, "--packages", "wired")
    assert outcome.status == 2
    assert outcome.err == "specwire: --packages: there is no package wired on Python's path (PYTHONPATH)\n"
    monkeypatch.setenv("SPECWIRE_PACKAGES", "./wire")
    assert specwire(capfd, "decode", "ticker", octets).status == 0


def test_a_capture_of_an_unknown_protocol(capfd: pytest.CaptureFixture[str]) -> None:
    """Each message says how to name a package; the module that has the name stated is not imported."""
    write_ticker_capture(Path("hostile"), "wire.ticker")
    for folder, name in (("capture", "ticker"), ("hostile", "wire.ticker")):
        outcome = specwire(capfd, "decode", folder, "--json")
        errors = [json.loads(line)["error"]["text"] for line in outcome.out.splitlines()]
        hint = "name its package with --packages MODULE, --grammars DIR or SPECWIRE_PACKAGES"
        assert errors == [f"there is no protocol '{name}' here: {hint}"] * 3
    assert "wire" not in sys.modules


def test_grammars_are_compiled_once(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Until one of them changes; the cache is the user's alone."""
    use_packages(None, Path("grammars"))
    cache = project / "cache" / "specwire" / "packages"
    (kept,) = cache.iterdir()
    assert cache.stat().st_mode & 0o777 == 0o700
    assert Path(load_package("ticker").__file__ or "").is_relative_to(kept)
    changed = {path: path.stat().st_mtime_ns for path in kept.rglob("*.py")}
    use_packages(None, Path("grammars"), ["ticker"])
    assert {path: path.stat().st_mtime_ns for path in kept.rglob("*.py")} == changed
    assert [path for path in cache.rglob(".compiling-*")] == []
    with (project / "grammars" / "ticker" / "grammar.abnf").open("a") as grammar:
        grammar.write("; a comment\n")
    REGISTRY.clear()
    use_packages(None, Path("grammars"))
    assert len(list(cache.iterdir())) == 2


def test_two_commands_at_once_compile_one_grammar(project: Path) -> None:
    """Both find a whole package, whoever is first."""
    words = ["decode", "ticker", LARGE_QUOTE[0].hex(), "--json", *GRAMMARS]
    running = [
        subprocess.Popen(
            [sys.executable, "-P", "-m", "specwire.runtime.cli.main", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "XDG_CACHE_HOME": str(project / "cache")},
        )
        for _ in range(3)
    ]
    for process in running:
        out, err = process.communicate(timeout=60)
        assert (process.returncode, err) == (0, "")
        assert json.loads(out)["fields"]["price"] == LARGE
    (kept,) = (project / "cache" / "specwire" / "packages").iterdir()
    assert [path.name for path in kept.iterdir()] == ["ticker"]


def test_a_cache_that_cannot_be_written(
    project: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """The package is made for this process."""
    (project / "cache").write_text("a file")
    outcome = specwire(capfd, "decode", "ticker", LARGE_QUOTE[0].hex(), *GRAMMARS)
    assert outcome.status == 0, outcome.err


def test_without_the_compiler_a_sentence_names_the_extra(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Where a library of the compiler is not installed."""
    real = builtins.__import__

    def without_lark(name: str, *arguments: Any, **named: Any) -> Any:
        if name == "specwire.generator.packages":
            raise ModuleNotFoundError("No module named 'lark'", name="lark")
        return real(name, *arguments, **named)

    monkeypatch.setattr(builtins, "__import__", without_lark)
    outcome = specwire(capfd, "decode", "ticker", "00", *GRAMMARS)
    assert outcome.status == 1
    assert outcome.err == "specwire: this needs lark: pip install 'specwire[compile]'\n"


def test_a_grammar_with_a_fault(project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """It is shown as `check` shows it, and nothing is kept."""
    (project / "grammars" / "ticker" / "grammar.abnf").write_text("ticker = (\n")
    outcome = specwire(capfd, "decode", "ticker", "00", *GRAMMARS)
    assert outcome.status == 2 and "error[E1" in outcome.err
    assert package_names() == tuple(name for name in package_names() if name != "ticker")
    assert not list((project / "cache").rglob("*.py"))
