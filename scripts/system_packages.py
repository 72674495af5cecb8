"""Install from the system's packages what pip cannot: Java, and Python's venv where that is a package.

Only as root or where `sudo -n` works without asking; otherwise the user is told in one sentence which
packages to install.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

OLDEST_JAVA = 17
"""The oldest version that Spark runs on."""


class SetUpError(Exception):
    """Set-up cannot go on; the text is one sentence for the user."""


@dataclass(frozen=True)
class Manager:
    """A system's package manager: how it refreshes its lists, finds and installs packages.

    `java` names the packages of a headless Java, with ``{version}`` in it, `compiler` those that bring a javac
    to it; `venv` the package of Python's venv, with ``{minor}`` for 3.x, empty where venv comes with Python.
    """

    program: str
    refresh: tuple[str, ...]
    search: tuple[str, ...]
    install: tuple[str, ...]
    java: str
    compiler: str
    venv: str = ""


MANAGERS = (
    Manager(
        program="apt-get",
        refresh=("apt-get", "update", "-qq"),
        search=("apt-cache", "search", "--names-only", "^openjdk-[0-9]+-jre-headless$"),
        install=("apt-get", "install", "-y", "-qq", "--no-install-recommends"),
        java="openjdk-{version}-jre-headless",
        compiler="openjdk-{version}-jdk-headless",
        venv="python3.{minor}-venv",
    ),
    Manager(
        program="dnf",
        refresh=("dnf", "makecache", "-q"),
        search=("dnf", "repoquery", "-q", "--queryformat", "%{name}\\n", "java-*-openjdk-headless"),
        install=("dnf", "install", "-y", "-q"),
        java="java-{version}-openjdk-headless",
        compiler="java-{version}-openjdk-devel",
    ),
    Manager(
        program="zypper",
        refresh=("zypper", "--non-interactive", "--quiet", "refresh"),
        search=("zypper", "--non-interactive", "--quiet", "search", "java-*-openjdk-headless"),
        install=("zypper", "--non-interactive", "--quiet", "install"),
        java="java-{version}-openjdk-headless",
        compiler="java-{version}-openjdk-devel",
    ),
    Manager(
        program="apk",
        refresh=("apk", "update", "--quiet"),
        search=("apk", "search", "--quiet", "openjdk*-jre-headless"),
        install=("apk", "add", "--quiet"),
        java="openjdk{version}-jre-headless",
        compiler="openjdk{version}-jdk",
    ),
    Manager(
        program="pacman",
        refresh=("pacman", "-Sy", "--noconfirm", "--quiet"),
        search=("pacman", "-Ssq", "^jre[0-9]+-openjdk-headless$"),
        install=("pacman", "-S", "--noconfirm", "--needed", "--quiet"),
        java="jre{version}-openjdk-headless",
        compiler="jdk{version}-openjdk",
    ),
)


@dataclass(frozen=True)
class Need:
    """Something that a package fills: how a person calls it, and the name of the package."""

    words: str
    package: Callable[[Manager], str]


def _newest_java(manager: Manager) -> int:
    """Return the version of the newest Java that the lists offer; the oldest that would do where they offer none."""
    found = subprocess.run(manager.search, capture_output=True, text=True, check=False).stdout
    names = re.finditer(manager.java.format(version=r"(\d+)"), found)
    return max([int(name[1]) for name in names] + [OLDEST_JAVA])


JAVA = Need(
    f"Java {OLDEST_JAVA} or newer (by JAVA_HOME or on the path)",
    lambda manager: manager.java.format(version=_newest_java(manager)),
)
JAVAC = Need("a javac", lambda manager: manager.compiler.format(version=_newest_java(manager)))
VENV = Need(
    "Python's venv module with pip",
    lambda manager: manager.venv.format(minor=sys.version_info.minor),
)


def install_packages(needs: Sequence[Need], *, lock: int) -> None:
    """Install what fills `needs`; raise `SetUpError`, naming what is missing, when that cannot be."""
    words = " and ".join(need.words for need in needs)
    manager = next((each for each in MANAGERS if shutil.which(each.program)), None)
    if manager is None or (manager.venv == "" and VENV in needs):
        raise SetUpError(f"{words} is missing: install it, then run make again")
    prefix = _as_root()
    if prefix is None:
        command = " ".join((*manager.install[:2], *(need.package(manager) for need in needs)))
        raise SetUpError(f"{words} is missing: run this as root, then make again: {command}")
    # One list of several that cannot be fetched is no reason to stop; a missing package is, below.
    _run((*prefix, *manager.refresh), lock)
    names = [need.package(manager) for need in needs]
    say(f"installing from the system's packages: {', '.join(names)}")
    run = _run((*prefix, *manager.install, *names), lock)
    if run.returncode != 0:
        print(run.stdout, file=sys.stderr)
        raise SetUpError(f"{words} is missing, and the system's packages did not bring it, see above")


def say(sentence: str) -> None:
    """Tell the user what is being done."""
    print(f"set-up: {sentence}", flush=True)


def _as_root() -> tuple[str, ...] | None:
    """Return what to put before a command so that root runs it, None when that is not allowed."""
    if os.geteuid() == 0:
        return ()
    sudo = shutil.which("sudo")
    if sudo and subprocess.run((sudo, "-n", "true"), capture_output=True, check=False).returncode == 0:
        return (sudo, "-n")
    return None


def _run(command: Sequence[str], lock: int) -> subprocess.CompletedProcess[str]:
    """Run `command`, its many words kept for the case that it fails."""
    return subprocess.run(
        command,
        env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
        pass_fds=(lock,),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
