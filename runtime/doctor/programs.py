"""The system, Python, what there is in C, and Java."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import specwire
from specwire.generated.builds import PURE, why_pure
from specwire.runtime.doctor.finding import Finding, State
from specwire.runtime.packages import load_package, package_names
from specwire.runtime.spark.session.target import JAVA_VERSION, jar_trouble, look_for_java

OLDEST_PYTHON = (3, 11)
ASKING_S = 10.0
"""Time for another Python to tell where it is, in seconds."""


def examine_system() -> Finding:
    """Return the kind of machine."""
    return Finding("system", State.OK, platform.platform())


def examine_python() -> Finding:
    """Return which Python runs, and where specwire stands."""
    here = f"{platform.python_implementation()} {platform.python_version()} at {_short(sys.executable)}"
    found = f"{here}; specwire {specwire.__version__} in {_short(Path(specwire.__file__).parent)}"
    if sys.version_info < OLDEST_PYTHON:
        wanted = ".".join(map(str, OLDEST_PYTHON))
        return Finding("python", State.WRONG, found, f"use Python {wanted} or newer")
    return Finding("python", State.OK, found)


def examine_codecs() -> Finding:
    """Return which packages run in C, and what keeps the others from it."""
    names = package_names()
    reasons = {name: why_pure(load_package(name).__name__) for name in names}
    pure = {name: reason for name, reason in reasons.items() if reason}
    if not pure:
        return Finding("codecs", State.OK, f"{len(names)} packages in C")
    if os.environ.get(PURE) == "1":
        return Finding("codecs", State.ABSENT, f"in Python, because {PURE}=1 is set", f"unset {PURE}")
    words = "; ".join(f"{name}: {reason}" for name, reason in pure.items())
    return Finding(
        "codecs", State.ABSENT, f"{len(pure)} of {len(names)} packages in Python ({words})", _compiling()
    )


def examine_transport() -> Finding:
    """Return whether the sockets hand messages to libzmq in C, or frame by frame through pyzmq."""
    try:
        from specwire.runtime.transport.messages import PACKAGE
    except ModuleNotFoundError as error:
        return Finding(
            "transport",
            State.ABSENT,
            f"{error.name} is not installed: no peers, brokers and taps",
            "pip install 'specwire[peers]'",
        )
    reason = why_pure(PACKAGE)
    if not reason:
        return Finding("transport", State.OK, "messages go to libzmq and come from it in C")
    advice = f"unset {PURE}" if os.environ.get(PURE) == "1" else _compiling()
    return Finding("transport", State.ABSENT, f"messages go through pyzmq, frame by frame ({reason})", advice)


def examine_java() -> Finding:
    """Return which Java Spark would start."""
    install = f"install Java {JAVA_VERSION} or newer (on Debian openjdk-17-jre-headless), or let JAVA_HOME lead to it"
    java = look_for_java()
    if java is None:
        home = os.environ.get("JAVA_HOME")
        where = f"below JAVA_HOME ({_short(home)})" if home else "on the path"
        return Finding("java", State.ABSENT, f"no java {where}: nothing runs on Spark", install)
    if not java.version:
        return Finding("java", State.WRONG, f"{java.program} does not tell its version", install)
    found = f"Java {java.version} at {_short(java.program)}"
    if not java.is_new_enough:
        return Finding("java", State.WRONG, f"{found}: Spark needs {JAVA_VERSION} or newer", install)
    return Finding("java", State.OK, found)


def examine_workers() -> Finding:
    """Return whether a Spark session that another program opens runs its Python workers with this Python."""
    stated = os.environ.get("PYSPARK_PYTHON")
    named = f"PYSPARK_PYTHON ({_short(stated)})" if stated else "python3 on the path"
    program = shutil.which(stated or "python3")
    if program is not None and _prefix_of(program) == os.path.realpath(sys.prefix):
        return Finding("workers", State.OK, f"{named} is this Python")
    which = "is no program" if program is None else f"is another Python, {_short(program)}"
    return Finding(
        "workers",
        State.ABSENT,
        f"{named} {which}: sessions that specwire does not open run Python workers with it",
        f"set PYSPARK_PYTHON={_short(sys.executable)}",
    )


def _prefix_of(program: str) -> str:
    """Return the environment that a Python runs in; empty where it does not tell."""
    asked = [program, "-c", "import sys; print(sys.prefix)"]
    try:
        ran = subprocess.run(asked, capture_output=True, text=True, timeout=ASKING_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return os.path.realpath(ran.stdout.strip()) if ran.returncode == 0 else ""


def examine_jar() -> Finding:
    """Return whether the Java decoders are compiled; Spark decodes with Arrow where they are not."""
    trouble = jar_trouble()
    if trouble is None:
        return Finding("jar", State.OK, "the Java decoders are compiled, of the sources beside them")
    found, _, _ = trouble.partition(" (")
    return Finding(
        "jar",
        State.ABSENT,
        f"{found}; Spark decodes with Arrow in Python workers",
        "in a checkout, with a javac on the path: make jar",
    )


def _compiling() -> str:
    """Return what to do to have the codecs in C."""
    compiler = sysconfig.get_config_var("CC") or "cc"
    headers = Path(sysconfig.get_path("include"), "Python.h")
    first = ""
    if shutil.which(os.environ.get("CC", compiler).partition(" ")[0]) is None or not headers.is_file():
        first = "install a C compiler and the headers of Python (gcc and python3-dev, or the like), then "
    return (
        f"{first}in a checkout: make setup; otherwise: pip install --force-reinstall --no-deps --no-cache-dir "
        "--no-binary specwire specwire"
    )


def _short(place: str | Path) -> str:
    """Return a path as a person may show it to others: the home folder is ``~``."""
    home = str(Path.home())
    text = str(place)
    return f"~{text.removeprefix(home)}" if text.startswith(home + os.sep) else text
