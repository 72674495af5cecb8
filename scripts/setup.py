"""Make everything that the project's programs need, once: Java, the system's venv package, ``.venv``, what is compiled.

`make` calls this before every target (through ``setup.sh``, which finds the Python that runs it). When
nothing has changed it says nothing and is done in a moment. It is redone when ``pyproject.toml`` or
``constraints.txt`` change, when the Python of ``.venv`` or the Java found before is gone, when the
folder was moved, and when an earlier set-up did not come to its end. Packages in C and the Java decoders are
compiled again when their sources change.

Two calls at once are safe: the second waits for the first. The lock is handed to every program started
here, so that it holds for as long as an installation is at work, even if this program was killed.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import accelerator
import decoders
from environment import Environment, Purpose
from java import Java, find_java
from system_packages import JAVA, JAVAC, VENV, SetUpError, install_packages, say

ROOT = Path(__file__).resolve().parent.parent


def main() -> int:
    """Set up what is missing; return the exit status."""
    parser = argparse.ArgumentParser(description="Set up .venv, Java and the compiled packages.")
    parser.add_argument("--for", dest="purpose", choices=get_args(Purpose), default="dev")
    parser.add_argument("--chosen", action="store_true", help="the user has named the Python that runs this")
    given = parser.parse_args()
    try:
        with locked(ROOT / ".venv.lock") as lock:
            environment = Environment(ROOT, lock, given.purpose)
            set_up(environment, python_is_chosen=given.chosen)
    except (SetUpError, OSError) as error:
        print(f"set-up: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def set_up(environment: Environment, *, python_is_chosen: bool) -> None:
    """Bring `.venv` and Java to where they should be, doing only what is missing."""
    state = environment.state(python_is_chosen=python_is_chosen)
    known = Java.read(environment.java_file)
    if state == "current" and known is not None and known.still_there():
        if not accelerator.is_current(environment):
            accelerator.compile_packages(environment)
        _compile_decoders(environment, known)
        return
    started = time.monotonic()
    java = find_java()
    without_java = java is None
    packages = [JAVA] if without_java else []
    if state == "missing" and not environment.python_has_venv():
        packages.append(VENV)
    if packages:
        install_packages(packages, lock=environment.lock)
        if without_java:
            _install_compiler(environment.lock)
        java = java or find_java()
    if java is None:
        raise SetUpError("Java was installed and still cannot be found: set JAVA_HOME to where it is")
    say(f"Java {java.version}")
    environment.bring_up(state)
    java.write(environment.java_file)
    accelerator.compile_packages(environment)
    _compile_decoders(environment, java)
    say(f"done in {time.monotonic() - started:.0f} s")


def _install_compiler(lock: int) -> None:
    """Bring a javac to a Java that was installed here; without one Spark decodes with Arrow."""
    try:
        install_packages([JAVAC], lock=lock)
    except SetUpError as error:
        say(f"going on without: {error}")


def _compile_decoders(environment: Environment, java: Java) -> None:
    if not decoders.is_current(environment, java):
        decoders.compile_decoders(environment, java)


@contextlib.contextmanager
def locked(path: Path) -> Iterator[int]:
    """Hold the lock file for as long as the context lasts; yield its descriptor."""
    lock = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another set-up is at work in this folder; waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield lock
    finally:
        os.close(lock)


if __name__ == "__main__":
    sys.exit(main())
