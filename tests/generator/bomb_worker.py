"""Worker process that runs commands on bombs, each in a forked child, and measures their cost.

A job is a JSON line on standard input: the command, the grammar and the profile. The answer is a JSON line on
standard output, the fields of `Cost`. The child calls the command in-process, so that an example does not start
another Python. The kernel limits the child's CPU time and address space.
"""

from __future__ import annotations

import json
import os
import re
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import IO, Self

ROOT = Path(__file__).resolve().parents[2]
MAX_CPU_S = 10
"""Most seconds of CPU time of a command, for any grammar."""
MAX_OCTETS = 500_000_000
"""Most octets of resident memory of a command."""
_KILLED_CPU_S = MAX_CPU_S + 10
_ADDRESS_OCTETS = 3 << 30


def _diff(folder: Path) -> list[str]:
    old = folder / "old" / "demo"
    old.mkdir(parents=True)
    (old / "grammar.abnf").write_text("m0 = %x00 old\nold = 2OCTET\n")
    return ["diff", str(old), str(folder / "demo")]


def _diff_changed(folder: Path) -> list[str]:
    """Compare with an edition in which messages have other names, and fields other names, sizes and places."""
    changed = folder / "changed" / "demo"
    changed.mkdir(parents=True)
    for path in (folder / "demo").iterdir():
        text = re.sub(r"\b([mr])(\d+)", r"\1x\2", path.read_text()).replace("2OCTET", "3OCTET")
        (changed / path.name).write_text(text.replace("%x01 ", "%x01 4OCTET "))
    return ["diff", str(folder / "demo"), str(changed)]


def _import_edition(folder: Path) -> list[str]:
    """Import a new edition of the bomb in the folder: the bomb with one more rule."""
    document = _document(folder, (folder / "demo" / "grammar.abnf").read_text() + "another = 2OCTET\n")
    return ["import", str(document), "--protocol", "demo", "--grammars", str(folder), "--dry-run"]


def _import_new(folder: Path) -> list[str]:
    document = _document(folder, (folder / "demo" / "grammar.abnf").read_text())
    return ["import", str(document), "--protocol", "fresh", "--grammars", str(folder), "--dry-run"]


def _document(folder: Path, grammar: str) -> Path:
    document = folder / "document.md"
    document.write_text(f"# Demo protocol\n\n```abnf\n{grammar}```\n")
    return document


COMMANDS: Mapping[str, Callable[[Path], list[str]]] = MappingProxyType(
    {
        "check": lambda folder: ["check", "demo", "--grammars", str(folder)],
        "generate": lambda folder: ["generate", "demo", "--grammars", str(folder), "--out", str(folder / "out")],
        "import": _import_new,
        "import-edition": _import_edition,
        "diff": _diff,
        "diff-changed": _diff_changed,
        "diff-same": lambda folder: ["diff", str(folder / "demo"), str(folder / "demo")],
        "show-ir": lambda folder: ["show", "ir", "demo", "--grammars", str(folder)],
        "show-json": lambda folder: ["show", "ir", "demo", "--grammars", str(folder), "--json"],
        "show-tree": lambda folder: ["show", "tree", "demo", "--grammars", str(folder)],
        "show-machine": lambda folder: ["show", "machine", "demo", "--grammars", str(folder)],
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Cost:
    """Measured cost of a command; `status` is None if a signal ended it."""

    cpu_s: float
    octets: int
    status: int | None
    error: str
    """The end of its standard error."""


class Worker:
    """Client of a worker process."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.generator.bomb_worker"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT, text=True,
        )  # fmt: skip

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._input.close()
        self._process.wait()
        self._output.close()

    @property
    def _input(self) -> IO[str]:
        assert self._process.stdin is not None
        return self._process.stdin

    @property
    def _output(self) -> IO[str]:
        assert self._process.stdout is not None
        return self._process.stdout

    def run(self, command: str, grammar: str, profile: str) -> Cost:
        """Run one of the `COMMANDS`."""
        self._input.write(json.dumps([command, grammar, profile]) + "\n")
        self._input.flush()
        return Cost(**json.loads(self._output.readline()))


def main() -> None:
    """Answer jobs until standard input ends."""
    from specwire.runtime.cli.main import load_command

    for name in ("check", "generate", "import", "diff", "show"):
        load_command(name)
    for name in ("generate", "diff"):  # import the modules that commands import when they are called
        _run_job(name, "m = %x01 x\nx = 2OCTET\n", "", fork=False)
    for line in sys.stdin:
        sys.stdout.write(json.dumps(_run_job(*json.loads(line))) + "\n")
        sys.stdout.flush()


def _run_job(command: str, grammar: str, profile: str, *, fork: bool = True) -> dict[str, object]:
    with tempfile.TemporaryDirectory(prefix="bomb-") as scratch:
        folder = Path(scratch)
        (folder / "demo").mkdir()
        (folder / "demo" / "grammar.abnf").write_text(grammar)
        if profile:
            (folder / "demo" / "profile.toml").write_text(profile)
        arguments = COMMANDS[command](folder)
        if not fork:
            _call(arguments, folder)
            return {}
        child = os.fork()
        if child == 0:
            resource.setrlimit(resource.RLIMIT_CPU, (_KILLED_CPU_S, _KILLED_CPU_S))
            resource.setrlimit(resource.RLIMIT_AS, (_ADDRESS_OCTETS, _ADDRESS_OCTETS))
            os._exit(_call(arguments, folder))
        _, status, used = os.wait4(child, 0)
        error = (folder / "stderr").read_text("utf-8", "replace")[-2_000:]
    return {
        "cpu_s": used.ru_utime + used.ru_stime,
        "octets": used.ru_maxrss * 1024,
        "status": os.WEXITSTATUS(status) if os.WIFEXITED(status) else None,
        "error": error,
    }


def _call(arguments: list[str], folder: Path) -> int:
    """Call a command with its output redirected to files; return the exit status, 70 for a traceback."""
    import traceback

    from specwire.runtime.cli.main import main as specwire

    sys.stdout.flush()
    kept = [os.dup(1), os.dup(2)]
    for number, name in enumerate(("stdout", "stderr"), start=1):
        with (folder / name).open("wb") as stream:
            os.dup2(stream.fileno(), number)
    try:
        specwire(arguments)
        return 0
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else 1
    except Exception:  # noqa: BLE001 - a traceback is an outcome, too
        traceback.print_exc()
        return 70
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        for number, copy in enumerate(kept, start=1):
            os.dup2(copy, number)
            os.close(copy)


if __name__ == "__main__":
    main()
