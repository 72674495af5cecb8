"""Measure our pair of FILEMQ peers against libfilemq's, the implementation in C: ``make bench``.

A server and a client run; files are then moved into the published folder in one step. The time ends
when the inbox has all of them, which are compared afterwards. So it includes the time until a server
notices them: libfilemq's looks once a second. The client of libfilemq neither checks digests nor
syncs files; ours does both, and is measured without syncing, too. The pairs take turns, and the
median round of each counts.
The server of libfilemq listens on port 5670. It hangs, and its memory grows, when a client's credit
is less than the next chunk but not zero; so the sizes here divide its credit.

libfilemq's programs `filemq_server` and `filemq_client` are taken from ``--programs`` or the path.
Where there are none, the program says so and ends with status 0.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from shutil import which
from statistics import median
from time import monotonic, perf_counter, sleep

from rich.console import Console
from rich.table import Table

from tests.benchmarks.filemq.transfer import MEGABYTE, ROOT, Case, make_files, read_digests

OURS, UNSYNCED, THEIRS = "specwire", "specwire, not synced", "libfilemq"
KINDS = (OURS, UNSYNCED, THEIRS)
DICE = Random(5)
BATCH = "batch"
MEMORY_KIB = 4_000_000
"""Bound of the memory of libfilemq's programs."""
DEADLINE_S = 60.0
POLL_S = 0.005
MISSING = """\
libfilemq's programs filemq_server and filemq_client were not found. Build them from
https://github.com/zeromq/filemq with CZMQ (`cmake -D WITH_DRAFTS=ON`), and name their folder with
--programs."""


Process = subprocess.Popen[str]


@contextmanager
def running(command: list[str], out: int = subprocess.PIPE) -> Iterator[Process]:
    """Run a peer."""
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=out, stderr=subprocess.DEVNULL, text=True, cwd=ROOT
    ) as process:
        try:
            yield process
        finally:
            process.kill()


@contextmanager
def our_pair(published: Path, inbox: Path, *flags: str) -> Iterator[tuple[Process, Process]]:
    """Run a server and a client of ours."""
    module = [sys.executable, "-m", "tests.benchmarks.filemq.peers"]
    with running([*module, "serve", str(published)]) as server:
        assert server.stdout is not None
        endpoint = json.loads(server.stdout.readline())
        with running([*module, "subscribe", endpoint, str(inbox), "-1", "0", *flags]) as client:
            assert client.stdin is not None
            client.stdin.write("go\n")
            client.stdin.flush()
            yield server, client


@contextmanager
def their_pair(programs: Path, published: Path, inbox: Path) -> Iterator[tuple[Process, Process]]:
    """Run a server and a client of libfilemq; nobody reads their lines for debugging."""
    inbox.mkdir()
    bounded, silent = ["sh", "-c", f'ulimit -v {MEMORY_KIB} && exec "$0" "$1"'], subprocess.DEVNULL
    with (
        running([*bounded, str(programs / "filemq_server"), str(published)], silent) as server,
        running([*bounded, str(programs / "filemq_client"), str(inbox)], silent) as client,
    ):
        yield server, client


def measure(kind: str, programs: Path, case: Case) -> float:
    """Return the seconds from the move of the files to the last one in the inbox."""
    with tempfile.TemporaryDirectory() as work:
        published, inbox, prepared = (Path(work) / name for name in ("published", "inbox", "prepared"))
        published.mkdir()
        digests = make_files(case, prepared)
        os.sync()
        with (
            their_pair(programs, published, inbox)
            if kind == THEIRS
            else our_pair(published, inbox, *(["sync"] if kind == OURS else []))
        ) as processes:
            wait_for_subscription(published, inbox, processes)
            sleep(DICE.random())  # libfilemq's server looks once a second
            begun = perf_counter()
            os.rename(prepared, published / BATCH)
            wait_for_files(inbox / BATCH, dict.fromkeys(digests, case.size), processes)
            seconds = perf_counter() - begun
        if read_digests(inbox / BATCH) != digests:
            raise SystemExit(f"{kind}: what is in the inbox is not what was sent")
    return seconds


def wait_for_subscription(published: Path, inbox: Path, processes: Sequence[Process]) -> None:
    """Publish one file after the other until one arrives: libfilemq sends no file that was there before."""
    for number in range(int(DEADLINE_S)):
        (published / f"first-{number}").touch()
        sleep(1)
        check_that_all_run(processes)
        if inbox.exists() and any(name.startswith("first-") for name in os.listdir(inbox)):
            return
    raise SystemExit("the client does not subscribe")


def wait_for_files(folder: Path, sizes: dict[str, int], processes: Sequence[Process]) -> None:
    """Return when a folder has files of these sizes."""
    end = monotonic() + DEADLINE_S
    left = dict(sizes)
    while left:
        check_that_all_run(processes)
        if monotonic() > end:
            raise SystemExit(f"{len(left)} of {len(sizes)} files did not come within {DEADLINE_S:g} s")
        sleep(POLL_S)
        if folder.exists() and len(os.listdir(folder)) >= len(sizes):
            for name in list(left):
                if not (folder / name).exists() or (folder / name).stat().st_size < left[name]:
                    break
                del left[name]


def check_that_all_run(processes: Sequence[Process]) -> None:
    """Raise SystemExit if a peer has ended."""
    for process in processes:
        if process.poll() is not None:
            raise SystemExit(f"{process.args!r} has ended with status {process.returncode}")


def main() -> None:
    """Measure, and print a table or JSON."""
    parser = argparse.ArgumentParser(prog="libfilemq", description=__doc__)
    parser.add_argument("--programs", type=Path, help="folder of filemq_server and filemq_client")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.add_argument("--megabytes", type=int, default=200, help="size of the large file")
    parser.add_argument("--files", type=int, default=2_000, help="number of small files")
    parser.add_argument("--rounds", type=int, default=3, help="how often each pair is measured")
    asked = parser.parse_args()
    found = which("filemq_server", path=asked.programs)
    if found is None:
        print(MISSING, file=sys.stderr)
        return
    programs = Path(found).parent.absolute()
    rows: list[dict[str, str | float]] = []
    for case in (
        Case(f"one file of {asked.megabytes} MB", asked.megabytes * MEGABYTE, 1, 1),
        Case(f"{asked.files:,} files of 1 kB", 1000, asked.files, 1),
    ):
        runs = [{kind: measure(kind, programs, case) for kind in KINDS} for _ in range(asked.rounds)]
        for kind in KINDS:
            seconds = median(run[kind] for run in runs)
            share = median(run[THEIRS] for run in runs) / seconds
            rows.append({"case": case.name, "pair": kind, "s": seconds, "x libfilemq": share})
    if asked.json:
        json.dump(rows, sys.stdout, indent=2)
        return
    table = Table(*rows[0])
    for row in rows:
        table.add_row(*(f"{value:.2f}" if isinstance(value, float) else value for value in row.values()))
    Console().print(table)


if __name__ == "__main__":
    main()
