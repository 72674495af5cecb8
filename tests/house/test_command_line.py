"""The root of the command line: quick to start, and a sentence instead of a trace for what users cause."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
import typer

from specwire import __version__
from specwire.generated.errors import CodecError
from specwire.generator.diagnostics import Diagnostics, Source, Span, SpecError
from specwire.runtime.cli import main as root
from specwire.runtime.cli.console import CommandError
from tests.benchmarks import startup
from tests.house.repository import ROOT
from tests.runtime.cli.commands import specwire


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `specwire` as a user does."""
    command = [sys.executable, "-m", "specwire", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)


def call(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> int | str | None:
    """Run a sub-command that raises `error`; return the exit status."""

    def command() -> None:
        raise error

    module = ModuleType("specwire.runtime.cli.decode")
    module.command = command  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    with pytest.raises(SystemExit) as end:
        root.main(["decode"])
    return end.value.code


def spec_error() -> SpecError:
    """One fault of a grammar, as the generator reports it."""
    diagnostics = Diagnostics()
    source = Source("some.abnf", "a = b\n")
    diagnostics.error("E201", Span(source, 1, 5, 1, 6), "rule 'b' is used but never defined")
    return SpecError(tuple(diagnostics))


def test_version() -> None:
    """`--version` names the program and the release."""
    assert run("--version").stdout == f"specwire {__version__}\n"


@pytest.mark.parametrize("words", [("--version", "--verbose"), ("--verbose", "--version")])
def test_version_tells_which_packages_run_in_c(
    words: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pure installation says so, and what to do."""
    monkeypatch.setenv("SPECWIRE_PURE", "1")
    version, python, codecs, advice = run(*words).stdout.splitlines()
    assert version == f"specwire {__version__}"
    assert python.startswith("python: CPython 3.")
    assert codecs == "codecs: in Python, because SPECWIRE_PURE=1 is set"
    assert advice == "  unset SPECWIRE_PURE"


def test_help_lists_every_command() -> None:
    """Every command has its line, which needs none of their modules."""
    shown = run("--help")
    assert shown.returncode == 0
    assert all(f" {name} " in shown.stdout for name in root.COMMANDS)


ALWAYS_LATE = {
    "pyspark",
    "pandas",
    "numpy",
    "pyarrow",
    "construct",
    "zmq",
    "asyncio",
    "specwire.runtime.cli.job",
}
COMPILER = {"lark", "jinja2", "ruff", "specwire.generator"}
DRAWING = {"railroad", "grandalf"}
DECODE = ["decode", "zre", "aaa106020001"]


@pytest.mark.parametrize(
    ("arguments", "late"),
    [
        (["--help"], ALWAYS_LATE | COMPILER | {"msgspec", "specwire.generated", "specwire.runtime.cli.show"}),
        (["--version"], ALWAYS_LATE | COMPILER | {"msgspec", "rich", "specwire.generated"}),
        (["decode", "--help"], ALWAYS_LATE | COMPILER | {"msgspec"}),
        (DECODE, ALWAYS_LATE | COMPILER | {"specwire.generated.flux", "specwire.generated.zre.machine"}),
        ([*DECODE, "--json"], ALWAYS_LATE | COMPILER | {"rich"}),
        (["schema", "zre", "--format", "arrow"], {"pyspark", "pandas", "construct", *COMPILER}),
        (["check", "zre"], ALWAYS_LATE | {"jinja2", "ruff", "specwire.generated"}),
        (["show", "ir", "zre", "--json"], ALWAYS_LATE | {"jinja2", "ruff", "rich", "specwire.generated"}),
        (["match", "-", "a", "x"], ALWAYS_LATE | {"jinja2", "ruff", "rich", "specwire.generated"}),
        (["generate", "zre", "--out", "none", "--check"], ALWAYS_LATE | DRAWING | {"specwire.generated"}),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_libraries_wait_for_the_command_that_needs_them(arguments: list[str], late: set[str]) -> None:
    """What makes a command slow to start is in memory only where the command works with it."""
    code = (
        "import sys\nfrom specwire.runtime.cli.main import main\n"
        f"try: main({arguments!r})\nexcept SystemExit as end: status = end.code\n"
        f"print('', status, sorted(set({sorted(late)!r}) & set(sys.modules)), file=sys.stderr, sep='|')"
    )
    command = [sys.executable, "-c", code]
    ended = subprocess.run(
        command, input='a = "x"\n', capture_output=True, text=True, check=True, cwd=ROOT, timeout=120
    )
    _, status, found = ended.stderr.splitlines()[-1].split("|")
    assert found == "[]"
    assert status in ("0", "None") or arguments[0] == "generate", ended.stderr


@pytest.mark.parametrize("case", startup.COMMANDS)
def test_commands_whose_start_is_measured(case: str) -> None:
    """`make bench` measures commands that do something."""
    ended = run(*startup.COMMANDS[case])
    assert ended.returncode == 0 and ended.stdout


def test_the_module_is_the_program() -> None:
    """`python -m specwire` is `specwire`, by that name."""
    assert "Usage: specwire [OPTIONS] COMMAND" in run("--help").stdout
    assert run("decod").stderr.startswith("Usage: specwire ")


@pytest.mark.parametrize("name", root.COMMANDS)
def test_every_command_shows_its_help(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    """The table of commands names modules that exist and load."""
    shown = specwire(capfd, name, "--help")
    assert shown.status == 0, shown.err
    assert f"Usage: specwire {name}" in shown.out
    assert "--install-completion" not in shown.out


def test_unknown_command_is_a_usage_error() -> None:
    """A typing error names the command that was probably meant."""
    ended = run("decod")
    assert ended.returncode == 2
    assert "decode" in ended.stderr


@pytest.mark.parametrize(
    ("error", "status", "text"),
    [
        (CommandError("there is no such thing", status=1), 1, "specwire: there is no such thing\n"),
        (
            FileNotFoundError(2, "No such file or directory", "a b"),
            2,
            "specwire: a b: No such file or directory\n",
        ),
        (
            ModuleNotFoundError("no", name="pyspark.sql"),
            1,
            "specwire: this needs pyspark: pip install 'specwire[spark]'\n",
        ),
    ],
)
def test_user_errors_are_one_sentence(
    error: Exception,
    status: int,
    text: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """No stack trace, nothing on standard output, and the status says whose turn it is."""
    assert call(monkeypatch, error) == status
    assert capsys.readouterr() == ("", text)


@pytest.mark.parametrize(
    "arguments",
    [
        ["decode", "flx", "00"],
        ["decode", "flux", "zz"],
        ["decode", "flux", "00"],
        ["schema", "flux", "--message", "None"],
        ["generate", "flx"],
        ["generate", "zre", "--target", "kodec"],
        ["check", "flx"],
        ["show", "ir", "flx"],
        ["show", "blocks", "no-such-document"],
        ["import", "no-such-document", "--protocol", "a"],
        ["diff", "flux", "flx"],
        ["match", "grammars/zre", "nothing", "x"],
    ],
    ids=" ".join,
)
def test_failures_are_sentences_in_any_format(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With --json, too: standard output holds a result or nothing, so no program takes one for the other."""
    monkeypatch.chdir(ROOT)
    for form in ([], ["--json"]):
        with pytest.raises(SystemExit) as end:
            root.main([*arguments, *form])
        printed = capsys.readouterr()
        assert (end.value.code, printed.out) == (2, "")
        assert printed.err.startswith("specwire: ") and printed.err.count("\n") == 1


def test_diagnostics_are_shown_as_they_are(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The place begins the line, so that editors can jump to it."""
    assert call(monkeypatch, spec_error()) == 2
    assert capsys.readouterr().err.startswith("some.abnf:1:5: error[E201]: ")


def test_our_own_faults_keep_their_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    """An error nobody foresaw is not dressed up as the user's."""

    def command() -> None:
        raise ZeroDivisionError

    module = ModuleType("specwire.runtime.cli.decode")
    module.command = command  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    with pytest.raises(ZeroDivisionError):
        root.main(["decode"])


def test_interrupt_ends_quietly(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Ctrl-C is what the user wanted: status 130, as shells expect."""
    assert call(monkeypatch, KeyboardInterrupt()) == 130
    assert capsys.readouterr().err == ""


def test_every_named_error_exists() -> None:
    """The table of user errors names classes that are there."""
    from importlib import import_module

    for name in root.USER_ERRORS:
        module, _, cls = name.rpartition(".")
        assert issubclass(getattr(import_module(module), cls), Exception)


def test_reader_that_leaves_is_no_error(tmp_path: Path) -> None:
    """`specwire … | head` ends without a trace."""
    script = f'"{sys.executable}" -m specwire --help 2>"{tmp_path}/errors" | true'
    subprocess.run(["sh", "-c", script], check=True)
    assert (tmp_path / "errors").read_text() == ""


def test_codec_errors_are_the_users() -> None:
    """Octets given on the command line that do not decode are bad input."""
    assert issubclass(CodecError, ValueError)
    assert root.USER_ERRORS[f"{CodecError.__module__}.{CodecError.__qualname__}"] == 2
    assert issubclass(typer.Exit, Exception)
