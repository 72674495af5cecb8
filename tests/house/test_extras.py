"""Extras: a codec imports with msgspec only, and a command names the extra that it needs."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable
from functools import cache
from typing import Any

import pytest

from tests.house.repository import ROOT

HIDING = """
import json, sys

hidden, modules, commands = json.loads(sys.argv[1])
allowed = {*sys.stdlib_module_names, "specwire", "msgspec"}


class Hiding:
    def __init__(self, finder):
        self.finder = finder

    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        if top in hidden or (hidden == ["*"] and top not in allowed):
            return None
        return self.finder.find_spec(name, path, target)


sys.meta_path[:] = map(Hiding, sys.meta_path)
for name in hidden:
    sys.modules.pop(name, None)
"""
"""Beginning of a program that hides some libraries, or with ``*`` all but msgspec."""

IMPORTING = """
from importlib import import_module

failed = {}
for name in modules:
    try:
        import_module(name)
    except ImportError as error:
        failed[name] = str(error)
print(json.dumps(failed))
"""

CALLING = """
import contextlib, io

from specwire.runtime.cli.main import main

ended = {}
for command in commands:
    said = io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
        try:
            main(command.split())
        except SystemExit as end:
            ended[command] = [end.code, said.getvalue()]
print(json.dumps(ended))
"""

BASE = (
    "lark",
    "ruff",
    "jinja2",
    "construct",
    "zmq",
    "numpy",
    "pyarrow",
    "pandas",
    "pyspark",
    "yaml",
    "aiohttp",
    "prometheus_client",
    "hypothesis",
    "railroad",
    "grandalf",
    "grpc",
)
"""Modules of libraries that only extras install."""

PACKAGES = ("cmb1", "filemq", "flux", "norfab", "zmtp", "zre")


def call(program: str, *arguments: object) -> dict[str, Any]:
    """Run a program in a new process, and return the object that it prints."""
    command = [sys.executable, "-c", HIDING + program, json.dumps(arguments)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode == 0, ran.stderr
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


def modules_of(*folders: str) -> Iterable[str]:
    """Yield the names of the modules of some folders."""
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*.py")):
            name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
            if not name.endswith("__main__"):
                yield f"specwire.{name}"


def test_a_codec_needs_msgspec_alone() -> None:
    """A package, its codec, state machine and stream decoder import without any other library."""
    parts = ("", ".codec", ".layout", ".machine", ".stream")
    names = [f"specwire.generated.{package}{part}" for package in PACKAGES for part in parts]
    known = {
        name for name in names if (ROOT / f"{name.removeprefix('specwire.').replace('.', '/')}.py").exists()
    }
    known |= {f"specwire.generated.{package}" for package in PACKAGES}
    assert call(IMPORTING, ["*"], sorted(known), []) == {}


def test_no_module_of_codecs_compiler_and_decoding_needs_unix() -> None:
    """They import where there is no `fcntl` and no `resource`, as on Windows."""
    folders = ("generated", "generator", "runtime/capture", "runtime/schemas", "runtime/spark")
    commands = (
        "decode",
        "encode",
        "generate",
        "check",
        "diff",
        "import_",
        "explain",
        "match",
        "schema",
        "pipeline",
    )
    served = "specwire.runtime.capture.curve_proxy"  # Serves connections, as peers do.
    names = [
        *(name for name in modules_of(*folders) if name != served),
        *(f"specwire.runtime.cli.{name}" for name in commands),
    ]
    assert call(IMPORTING, ["fcntl", "resource", "termios", "pwd", "grp"], names, []) == {}


@cache
def ends_of_commands() -> dict[str, Any]:
    """Return the exit status and the errors of some commands of a plain installation."""
    return call(CALLING, BASE, [], [*NEEDS, *WORKS])


NEEDS = {
    "check zre": "compile",
    "generate zre --out wire": "compile",
    "match zre ping ab": "compile",
    "show machine flux": "compile",
    "diff zre zre": "compile",
    "filemq serve": "peers",
    "keys new name": "peers",
    "zre join": "peers",
    "norfab broker": "peers",
    "schema flux --format arrow": "arrow",
    "capture list .": "arrow",
    "schema flux --format ddl": "spark",
    "pipeline catalog --out out --database flux": "spark",
}
"""Commands of a plain installation, with the extra that each lacks."""

WORKS = ("decode zre aaa106020001", "show builds", "doctor", "explain E100", "--version")


@pytest.mark.parametrize("command", NEEDS)
def test_a_command_names_the_extra_that_it_lacks(command: str) -> None:
    """One sentence, with what to type."""
    status, said = ends_of_commands()[command]
    assert (status, said.count("\n")) == (1, 1), said
    assert said.endswith(f": pip install 'specwire[{NEEDS[command]}]'\n"), said


@pytest.mark.parametrize("command", WORKS)
def test_a_plain_installation_decodes_and_tells_what_it_lacks(command: str) -> None:
    """These commands need no extra."""
    status, said = ends_of_commands()[command]
    assert "Traceback" not in said
    assert status in (0, None) or command == "doctor", said
