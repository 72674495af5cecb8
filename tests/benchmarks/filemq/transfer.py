"""Run one transfer: a server and its clients, each a process, all clients set off together."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from hashlib import sha1
from pathlib import Path
from typing import Any

from tests.benchmarks.filemq.side import DEADLINE_S

ROOT = Path(__file__).parents[3]
MEGABYTE = 10**6


@dataclass(frozen=True)
class Kind:
    """Who transfers: the module of both sides, and what its client is told besides."""

    name: str
    module: str
    flags: tuple[str, ...] = ()


@dataclass(frozen=True)
class Case:
    """What is transferred: so many files of so many octets to each client."""

    name: str
    size: int
    files: int
    clients: int

    @property
    def octets(self) -> int:
        """Octets that all clients receive together."""
        return self.size * self.files * self.clients


@dataclass(frozen=True)
class Run:
    """One transfer.

    Attributes:
        seconds: from the first client's request to the last client's last file.
        client_cpu_s: processor time of all clients, without their start; so the server's.
        client_kib: largest resident set of the largest client; so the server's.
    """

    seconds: float
    client_cpu_s: float
    server_cpu_s: float
    client_kib: int
    server_kib: int


def make_files(case: Case, folder: Path) -> dict[str, str]:
    """Make the files of `case`, and return their digests by name; they stay in the page cache."""
    folder.mkdir()
    content = os.urandom(min(case.size, 8 * MEGABYTE))
    for number in range(case.files):
        with (folder / f"file-{number:06}").open("wb") as stream:
            for begin in range(0, case.size, len(content)):
                stream.write(content[: min(len(content), case.size - begin)])
    return read_digests(folder)


def transfer(case: Case, kind: Kind, folder: Path, digests: dict[str, str], work: Path) -> Run:
    """Transfer what is in `folder`; every client must have exactly `digests`, which is checked after the clock stops."""
    inboxes = [work / f"inbox-{number}" for number in range(case.clients)]
    # What was written and deleted before is settled on the disk: this run would pay for it otherwise.
    os.sync()
    with _child(kind, "serve", folder) as server, ExitStack() as stack:
        words = (str(case.files), str(case.size), *kind.flags)
        endpoint = _read(server)
        clients = [
            stack.enter_context(_child(kind, "subscribe", endpoint, inbox, *words)) for inbox in inboxes
        ]
        for client in clients:
            _read(client)
        for client in clients:
            _tell(client, "go\n")
        rows = [_read(client) for client in clients]
        for client in clients:
            _tell(client, None)
        _tell(server, None)
        server_row = _read(server)
    for inbox in inboxes:
        if read_digests(inbox) != digests:
            raise SystemExit(f"{kind.name}: what is in {inbox} is not what was sent")
        shutil.rmtree(inbox)
    seconds = max(row["ended"] for row in rows) - min(row["begun"] for row in rows)
    return Run(
        seconds,
        client_cpu_s=sum(row["cpu_s"] for row in rows),
        server_cpu_s=server_row["cpu_s"],
        client_kib=max(row["kib"] for row in rows),
        server_kib=server_row["kib"],
    )


@contextmanager
def _child(kind: Kind, *arguments: object) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", kind.module, *map(str, arguments)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT
    ) as child:
        try:
            yield child
            child.wait(DEADLINE_S)
        finally:
            child.kill()


def _read(child: subprocess.Popen[str]) -> Any:
    assert child.stdout is not None
    return json.loads(child.stdout.readline())


def _tell(child: subprocess.Popen[str], word: str | None) -> None:
    """Write to a child's input; None ends it."""
    assert child.stdin is not None
    if word is not None:
        child.stdin.write(word)
        child.stdin.flush()
    else:
        child.stdin.close()


def read_digests(folder: Path) -> dict[str, str]:
    return {file.name: _digest(file) for file in folder.iterdir() if file.is_file()}


def _digest(file: Path) -> str:
    with file.open("rb") as stream:
        digest = sha1(usedforsecurity=False)
        while block := stream.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
