"""Start libFuzzer on a target in a process of its own, and read from what it prints how far it came."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.fuzz.corpus import CORPUS, FOUND, inputs

ROOT = Path(__file__).resolve().parents[2]
SLOWEST_S = 20
"""Seconds that one input may take; a thousandth of it is usual."""
GRACE_S = 60
"""Seconds after which a worker that does not end by itself is ended."""
_COVERAGE = re.compile(r"^#\d+\s+(\w+)\s+cov: (\d+)", re.MULTILINE)
_EXECUTIONS = re.compile(r"^(?:stat::number_of_executed_units: |#)(\d+)", re.MULTILINE)


@dataclass(frozen=True)
class Outcome:
    """What became of fuzzing one target."""

    target: str
    executions: int
    kept: int
    """Inputs of the committed corpus."""
    new: int
    """Inputs that ran something which those do not."""
    edges: int
    """Edges of our code that were run in the end, and"""
    new_edges: int
    """how many of them by new inputs only."""
    findings: tuple[Path, ...]
    status: int
    """Of the process; 0 where nothing was found."""
    log: Path


def fuzz(target: str, seconds: int, folder: Path) -> Outcome:
    """Fuzz a target for so many seconds; what is found is written below `folder`."""
    found, findings, log = folder / "corpus" / target, folder / "findings" / target, folder / f"{target}.log"
    for made in (found, findings, CORPUS / target):
        made.mkdir(parents=True, exist_ok=True)
    before = set(findings.iterdir())
    folders = [folder for folder in (found, CORPUS / target, FOUND / target) if folder.is_dir()]
    options: tuple[str | Path, ...] = (
        f"-max_total_time={seconds}", f"-timeout={SLOWEST_S}", f"-artifact_prefix={findings}/",
        "-print_final_stats=1", *folders,
    )  # fmt: skip
    status = run_worker(target, options, log, seconds + GRACE_S)
    text = log.read_text(encoding="utf-8", errors="replace")
    coverage = {event: int(edges) for event, edges in _COVERAGE.findall(text)}
    edges = max(coverage.values(), default=0)
    return Outcome(
        target, executions=max(map(int, _EXECUTIONS.findall(text)), default=0), kept=len(inputs(target)),
        new=len(list(found.iterdir())), edges=edges, new_edges=edges - coverage.get("INITED", edges),
        findings=tuple(sorted(set(findings.iterdir()) - before)), status=status, log=log,
    )  # fmt: skip


def run_worker(target: str, options: Sequence[str | Path], log: Path, seconds: int) -> int:
    """Run the worker of a target with libFuzzer's `options`; return its exit status.

    What it makes in the folder for temporary files goes with it: libFuzzer ends a process without clean-up.
    """
    command = [sys.executable, "-m", "tests.fuzz.worker", target, *map(str, options)]
    with tempfile.TemporaryDirectory(prefix="specwire-fuzz-") as scratch, log.open("wb") as output:
        process = subprocess.Popen(
            command, stdout=output, stderr=subprocess.STDOUT, cwd=ROOT, env={**os.environ, "TMPDIR": scratch}
        )
        try:
            return process.wait(seconds)
        except subprocess.TimeoutExpired:
            return 124
        finally:
            process.kill()
            process.wait()
