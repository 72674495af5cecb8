"""The Java decoders for Spark: compiled once where there is a javac, and again when their sources or the javac change.

They are not needed, so nothing here ends set-up: without them Spark decodes with Arrow, and one line says so. The
stamp in `.venv` records what was tried; where there was no javac, the first `make` after one was installed tries
again.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from pathlib import Path

from environment import Environment
from java import Java
from system_packages import SetUpError, say

JAR = Path("generated", "java", "decoders.jar")
MODULE = "specwire.runtime.spark.decoding.compile_jar"
_COMPILING = ("runtime/spark/decoding/compile_jar.py", "runtime/spark/session/target.py")


def is_current(environment: Environment, java: Java) -> bool:
    """Whether the jar was compiled of what is there now, or could not be and still cannot."""
    try:
        stamp = json.loads(_stamp(environment).read_text())
        made, digest = stamp["made"], stamp["digest"]
    except (OSError, ValueError, KeyError, TypeError):
        return False
    return bool(digest == _digest(environment, java)) and (not made or (environment.root / JAR).is_file())


def compile_decoders(environment: Environment, java: Java) -> None:
    """Compile the jar, and say what came of it in one line."""
    digest, javac, made = _digest(environment, java), _find_javac(java), False
    if javac is None:
        say(
            "no javac beside Java: Spark decodes with Arrow (with a JDK, the next make compiles the Java decoders)"
        )
    else:
        say("compiling the Java decoders")
        try:
            environment.call("-m", MODULE, "--javac", javac)
            made = True
        except SetUpError as error:
            say(f"Spark decodes with Arrow: {error}")
    _stamp(environment).write_text(json.dumps({"digest": digest, "made": made}) + "\n")


def _find_javac(java: Java) -> str | None:
    """Return the compiler that stands beside a `java`, else one on the path."""
    beside = Path(java.program).resolve().parent / "javac"
    return str(beside) if os.access(beside, os.X_OK) else shutil.which("javac")


def _stamp(environment: Environment) -> Path:
    return environment.folder / "decoders.json"


def _digest(environment: Environment, java: Java) -> str:
    """SHA-256 of all that decides what comes out: sources, how they are compiled, the Java and its compiler."""
    root = environment.root
    digest = hashlib.sha256(f"{_find_javac(java)} {java.version}\n".encode())
    sources = sorted((root / "generated").glob("*/*.java"))
    for path in [*sources, *(root / name for name in _COMPILING)]:
        digest.update(f"{path.relative_to(root)}\n".encode() + path.read_bytes())
    return digest.hexdigest()
