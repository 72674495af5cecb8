"""Make the corpus anew: ``python -m tests.fuzz.grow``, after a run of `make fuzz`.

For each target libFuzzer chooses, among the seeds, the corpus and what the run found new, the fewest and shortest
inputs that run every edge which all of them run together. So the corpus stays small, and what a change of the code
made superfluous goes. An input that its target finds at fault ends it: libFuzzer would leave it out.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.fuzz.corpus import CORPUS, inputs, store
from tests.fuzz.libfuzzer import run_worker
from tests.fuzz.run import FOLDER
from tests.fuzz.targets import TARGETS

SECONDS = 300
OPTIONS = ("-set_cover_merge=1", "-use_counters=0", "-rss_limit_mb=0")
"""Edges only: how often one is run makes many files that differ in little."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Choose the inputs of the targets that the command line names, or of all; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.grow", description="Make the corpus anew.")
    # argparse holds the empty list against the choices as well.
    parser.add_argument("target", nargs="*", choices=[[], *TARGETS], help="only this one")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where `make fuzz` left what it found")
    chosen = parser.parse_args(arguments)
    for name in chosen.target or TARGETS:
        before = len(inputs(name))
        if not grow(name, chosen.folder / "corpus" / name):
            print(f"{name}: left as it is, libFuzzer failed", file=sys.stderr)
            return 1
        kept = inputs(name)
        print(f"{name:22}{before:6} ->{len(kept):5} inputs{sum(p.stat().st_size for p in kept):9,} octets")
    return 0


def grow(name: str, found: Path) -> bool:
    """Replace the inputs of a target; return whether libFuzzer did its part."""
    target = TARGETS[name]
    check = target.prepare()
    for path in inputs(name):
        check(path.read_bytes())
    with tempfile.TemporaryDirectory(prefix="specwire-fuzz-") as scratch:
        chosen, seeds = Path(scratch, "chosen"), Path(scratch, "seeds")
        chosen.mkdir()
        store(seeds, (octets for octets in target.seeds() if len(octets) <= target.longest))
        sources = [folder for folder in (CORPUS / name, found, seeds) if folder.is_dir()]
        log = Path(scratch, "merge.log")
        if run_worker(name, (*OPTIONS, chosen, *sources), log, SECONDS) or not any(chosen.iterdir()):
            print(log.read_text(encoding="utf-8", errors="replace")[-2000:], file=sys.stderr)
            return False
        shutil.rmtree(CORPUS / name, ignore_errors=True)
        store(CORPUS / name, (path.read_bytes() for path in chosen.iterdir()))
    return True


if __name__ == "__main__":
    sys.exit(main())
