"""Run the commands of a page as a reader types them: in one shell, one after the other, in a scratch folder.

A command that ends must end with status 0, or the one that a note states, and print what the page shows; ``…``
stands for anything in a line, and for any lines where it is alone. A server is started in the background, and
what follows waits until it says that it is ready. Commands that set up the machine (``pip install``, ``make``)
and tools of the repository are not run; `test_commands` looks whether what they name is there.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from shutil import which
from typing import IO

from tests.docs.page import Block, Command, blocks, commands

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = Path(sys.executable).parent
DEADLINE_S = 100.0
"""How long a command may take, or a server until it is ready, on a machine with much else to do."""

SERVERS: Mapping[tuple[str, ...], str] = {
    ("specwire", "filemq", "serve"): "serving ",
    ("specwire", "filemq", "subscribe"): "subscribed to ",
    ("specwire", "flux", "broker"): "listening on",
    ("specwire", "flux", "event", "sub"): "",
    ("specwire", "flux", "dmesg", "--follow"): "",
    ("specwire", "flux", "rpc", "--streaming"): "",
    ("specwire", "norfab", "broker"): "listening on",
    ("specwire", "norfab", "worker"): "registered",
    ("specwire", "capture", "proxy"): "passing on ",
    ("specwire", "bridge"): "bridging ",
    ("specwire", "zre", "join"): "listens on",
}
"""Commands that do not end, by their first words, and a pattern of what they say when they are ready; empty where
what follows does not need them."""

SET_UP = ("make", "pip", "pipx")
"""Commands that change the machine."""

_END = "\x1eended "


class PageError(AssertionError):
    """A command of a page did not do what the page says."""


def run_page(page: Path) -> int:
    """Run all commands of a page, and return how many there were."""
    count = 0
    # What writes a capture ends after the server that it is for, and may still put a file there.
    made = tempfile.TemporaryDirectory(prefix="page-", ignore_cleanup_errors=True)
    with made as folder, open_shell(Path(folder)) as shell:
        for block in blocks(page):
            for note in block.notes:
                if note.kind == "needs" and which(note.text) is None:
                    return count
                if note.kind == "setup":
                    shell.do(Command(note.text, ()), block, 0)
            if block.language == "console" and not block.note("by") and not block.note("skip"):
                count += shell.run_block(block)
    return count


class Shell:
    """A bash, told what to do through its standard input."""

    def __init__(self, process: subprocess.Popen[str], folder: Path) -> None:
        assert process.stdin is not None and process.stdout is not None
        self._in: IO[str] = process.stdin
        self._out: IO[str] = process.stdout
        self._folder = folder
        self._servers = 0

    def run_block(self, block: Block, *, set_up: bool = False) -> int:
        """Run the commands of a block, those that set up the machine where `set_up` says so; return their number."""
        told = [command for command in commands(block) if set_up or not is_set_up(first_words(command.text))]
        for index, command in enumerate(told, 1):
            status = int(block.note("status") or 0) if index == len(told) else 0
            self.do(command, block, status)
        return len(told)

    def do(self, command: Command, block: Block, status: int) -> None:
        """Start a server and wait until it is ready; run any other command to its end."""
        ready = _ready(command.text)
        if ready is None:
            self.run(command, block, status)
        else:
            self._start(command, ready, block)

    def run(self, command: Command, block: Block, status: int) -> list[str]:
        """Run a command to its end; return the lines that it printed."""
        if first_words(command.text)[-1:] == ["bash"]:  # a shell for what follows reads what is written here
            self._in.write(f"{command.text}\nprintf '{_END}0\\n'\n")
        else:
            self._in.write(f"{{ {command.text}\n}} </dev/null\nprintf '\\n{_END}%s\\n' $?\n")
        self._in.flush()
        printed = []
        for line in self._out:
            if line.startswith(_END):
                break
            printed.append(line.rstrip())
        else:
            raise PageError(f"{block.place}: the shell ended at: {command.text}\n" + "\n".join(printed))
        ended = int(line.removeprefix(_END))
        shown = "\n".join(printed).strip("\n")
        if ended != status:
            raise PageError(f"{block.place}: status {ended} and not {status}: {command.text}\n{shown}")
        if command.output and not fits(command.output, shown.splitlines()):
            wanted = "\n".join(command.output)
            raise PageError(f"{block.place}: {command.text}\nprints\n{shown}\nand not\n{wanted}")
        return shown.splitlines()

    def _start(self, command: Command, ready: str, block: Block) -> None:
        """Start a server, and wait until it says that it is ready."""
        self._servers += 1
        log = self._folder / f"server-{self._servers}.log"
        log.touch()
        text = re.sub(r"\s+#.*", "", command.text)
        started = Command(f"{text} >{shlex.quote(str(log))} 2>&1 & echo $!", ())
        process = int(self.run(started, block, 0)[-1])
        end = time.monotonic() + DEADLINE_S
        while not re.search(ready, said := log.read_text(errors="replace")):
            if not _lives(process) or time.monotonic() > end:
                raise PageError(f"{block.place}: {text}\nhas ended, or does not say {ready!r}\n{said}")
            time.sleep(0.02)


@contextmanager
def open_shell(folder: Path, programs: Path = SCRIPTS, **variables: str) -> Iterator[Shell]:
    """Have a shell in a folder of its own, with a home of its own; it finds `programs` before those of the system."""
    work = folder / "work"
    for name in ("work", "home", "run"):
        (folder / name).mkdir(mode=0o700)
    environment = {
        "PATH": f"{programs}:{os.defpath}:/usr/sbin:/sbin",
        "HOME": str(folder / "home"),
        "XDG_RUNTIME_DIR": str(folder / "run"),
        "LANG": "C.UTF-8",
        "COLUMNS": "110",
        "NO_COLOR": "1",
        "TERM": "dumb",
        "REPOSITORY": str(ROOT),
    } | {name: os.environ[name] for name in ("JAVA_HOME", "SPECWIRE_PURE") if name in os.environ}
    process = subprocess.Popen(
        ["bash", "--noprofile", "--norc"],
        cwd=work,
        env=environment | variables,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    shell = Shell(process, folder)
    try:
        yield shell
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, 15)
        assert process.stdin is not None and process.stdout is not None
        with suppress(BrokenPipeError):
            process.stdin.close()
        with suppress(ProcessLookupError):
            os.killpg(process.pid, 9)
        process.stdout.close()
        process.wait(DEADLINE_S)


def first_words(text: str) -> list[str]:
    """Return the words of a command up to a pipe, a redirection or another command."""
    words = shlex.split(text.partition("<<")[0], comments=True)
    return words[
        : next((n for n, word in enumerate(words) if word in ("|", ">", "&&", "&", ";")), len(words))
    ]


def _lives(process: int) -> bool:
    """Whether a process is there; the shell that started it takes note of its end at once."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def is_set_up(words: list[str]) -> bool:
    """Whether a command sets up the machine, or is a tool of the repository that takes its time."""
    return words[0] in SET_UP or (words[:2] == ["python", "-m"] and words[2].startswith("tests."))


def fits(wanted: tuple[str, ...], printed: list[str]) -> bool:
    """Whether the lines that a page shows stand for those that were printed; blanks count once, tables are wide."""
    pattern = ""
    for line in wanted:
        if line.strip() in ("…", "..."):
            pattern += r"(?:.*\n)*?"
        else:
            parts = re.split(r"…|\.\.\.", _closed_up(line))
            pattern += ".*".join(map(re.escape, parts)) + r"\n"
    return re.fullmatch(pattern, "".join(f"{_closed_up(line)}\n" for line in printed)) is not None


def _closed_up(line: str) -> str:
    return re.sub(r"[ \t]+", " ", line.rstrip())


def _ready(text: str) -> str | None:
    """Return what a server says when it is ready; None for a command that ends."""
    words = first_words(text)
    if "--dry-run" in words:
        return None
    return next((said for first, said in SERVERS.items() if tuple(words[: len(first)]) == first), None)
