"""One target under atheris: ``python -m tests.fuzz.worker TARGET [libFuzzer's options and folders]``.

Only what the target imports of specwire is instrumented, so that coverage is that of our code. The address space
is bounded: whoever allocates what a peer claims gets a MemoryError, which is a finding, also where the memory
would never have been touched. libFuzzer ends the process; its exit status is 0 where nothing was found.
"""

from __future__ import annotations

import contextlib
import io
import random
import resource
import shlex
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import atheris

from tests.fuzz.mutation import changed, crossed
from tests.fuzz.targets import TARGETS, Check, Target

SPARE_OCTETS = 1 << 30
"""Of address space, beyond what the process has when fuzzing begins."""


def main() -> None:
    """Fuzz the target that the command line names."""
    target = TARGETS[sys.argv[1]]
    check = instrumented(target)
    bound_memory()
    # libFuzzer starts itself again to merge, through a shell.
    program = f"{shlex.quote(sys.executable)} -m tests.fuzz.worker {target.name}"
    with dictionary(target) as words:
        options = [f"-max_len={target.longest}", *words]
        atheris.Setup([program, *options, *sys.argv[2:]], check, **_mutators(target))
        atheris.Fuzz()


@contextlib.contextmanager
def dictionary(target: Target) -> Iterator[list[str]]:
    """Write the words of a target into a file for as long as the context lasts; yield the option that names it."""
    words = dict.fromkeys(word for word in target.words() if word)
    with tempfile.NamedTemporaryFile("w", suffix=".dict") as file:
        file.writelines(f'"{_escaped(word)}"\n' for word in words)
        file.flush()
        yield [f"-dict={file.name}"] if words else []


def instrumented(target: Target) -> Check:
    """Return the check of a target, with all that it imports of specwire counting what it runs."""
    # atheris lists every module that it instruments; a failing import shows itself.
    with contextlib.redirect_stderr(io.StringIO()), atheris.instrument_imports(include=["specwire"]):
        return target.prepare()


def bound_memory() -> None:
    """Leave the process `SPARE_OCTETS` to grow."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    limit = pages * resource.getpagesize() + SPARE_OCTETS
    # The hard limit stays: libFuzzer's merge starts this program again.
    resource.setrlimit(resource.RLIMIT_AS, (limit, resource.getrlimit(resource.RLIMIT_AS)[1]))


def _mutators(target: Target) -> dict[str, Any]:
    """What changes and crosses inputs that are pieces; libFuzzer itself does it for all others."""
    if not target.depth:
        return {}

    def mutate(octets: bytes, longest: int, seed: int) -> bytes:
        return changed(octets, longest, random.Random(seed), target.depth, atheris.Mutate)

    def cross(one: bytes, other: bytes, longest: int, seed: int) -> bytes:
        return crossed(one, other, longest, random.Random(seed))

    return {"custom_mutator": mutate, "custom_crossover": cross}


def _escaped(word: bytes) -> str:
    return "".join(f"\\x{octet:02x}" for octet in word)


if __name__ == "__main__":
    main()
