"""What is installed into an empty environment, and what must work there.

Each trial makes a virtual environment, has pip install one distribution of ``dist/``, and runs commands in an empty
folder, with a home of its own, so that nothing of the repository or of the user is reached.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

WHEEL, PURE_WHEEL, ARCHIVE = "specwire-*-cp*.whl", "specwire-*-py3-none-any.whl", "specwire-*.tar.gz"

NEEDS_LITTLE = """
import sys
from specwire.generated import flux
request = flux.Request(topic="kvs.get", payload=b"{}", matchtag=7)
assert flux.decode(request.encode()) == request
strays = {"lark", "jinja2", "pyspark", "pyarrow", "numpy", "zmq", "typer", "rich", "ruff"} & set(sys.modules)
assert not strays, strays
"""
"""A codec is imported and used; what it does not need is not in memory, or not even installed."""

BUILDS = "from specwire.generated import flux, zre; assert flux.ACCELERATED is zre.ACCELERATED is {}"

OWN_PACKAGE = """
from wire import zre
assert str(zre.decode([bytes.fromhex("aaa106020001")])) == "Ping(version=2, sequence=1)"
"""

TABLES = """
from pathlib import Path
assert Path("tables/report.html").stat().st_size > 10_000
assert list(Path("tables").rglob("*.parquet"))
"""

COMMANDS = (
    ("specwire", "--version"),
    ("specwire", "doctor"),
    ("specwire", "check", "zre"),
    ("specwire", "decode", "zre", "aaa106020001"),
    ("specwire", "generate", "zre", "--out", "wire"),
    ("python", "-c", OWN_PACKAGE),
    ("specwire", "flux", "start", "--size", "3", "--", "specwire", "flux", "overlay", "status"),
)
"""What a plain installation does: the generator, a codec, and peers on loopback."""

SMALL_EXTRAS = ("capture", "norfab", "pcap", "metrics", "testing", "docs")
"""Those that need no Java."""

WITH_EXTRAS = (
    ("specwire", "doctor", *(word for extra in SMALL_EXTRAS for word in ("--need", extra))),
    ("specwire", "generate", "zre", "--target", "reference", "--out", "pages"),
    ("python", "-c", "from specwire.generated.zre import strategies; strategies.messages().example()"),
    *(
        ("specwire", *words.split())
        for words in (
            "flux start --size 2 --capture captures -- specwire flux ping --count 3 1",
            "decode captures --limit 5",
            "capture list captures",
        )
    ),
)

ON_SPARK = (
    ("specwire", "doctor", "--need", "spark", "--need", "java", "--need", "arrow"),
    *(
        ("specwire", *words.split())
        for words in (
            "flux start --size 2 --capture captures -- specwire flux ping --count 3 1",
            "pipeline run --capture captures --out tables",
        )
    ),
    (
        "python",
        "-c",
        TABLES,
    ),
)


class TrialError(Exception):
    """A distribution does not work: which command failed, with what it said below it."""


@dataclass(frozen=True)
class Trial:
    """One distribution, in one empty environment."""

    what: str
    install: tuple[str, ...]
    """What pip is told, ``{}`` standing for the distribution."""
    distribution: str
    """Its name in ``dist/``, as a pattern."""
    commands: tuple[tuple[str, ...], ...]
    then: tuple[str, ...] = ()
    """What pip is told next."""


def _python(code: str) -> tuple[str, ...]:
    return "python", "-c", code


TRIALS: Mapping[str, Trial] = {
    "bare": Trial(
        "a generated package with msgspec, and nothing else that specwire needs",
        ("--no-deps", "{}"),
        WHEEL,
        (_python(NEEDS_LITTLE), _python(BUILDS.format(True))),
        then=("msgspec",),
    ),
    "wheel": Trial(
        "pip install specwire, of the wheel with codecs in C",
        ("{}",),
        WHEEL,
        (_python(BUILDS.format(True)), _python(NEEDS_LITTLE), *COMMANDS),
    ),
    "pure": Trial(
        "the same, of the wheel in Python alone",
        ("{}",),
        PURE_WHEEL,
        (_python(BUILDS.format(False)), _python(NEEDS_LITTLE), *COMMANDS),
    ),
    "archive": Trial(
        "the same, of the source archive, which pip compiles",
        ("{}",),
        ARCHIVE,
        (_python(BUILDS.format(True)), _python(NEEDS_LITTLE), *COMMANDS),
    ),
    "typed": Trial(
        "type information, as mypy --strict sees it in a user's program",
        ("{}", "mypy"),
        WHEEL,
        (
            (
                "mypy",
                "--strict",
                "-c",
                "from specwire.generated import flux\nflux.Request(topic='a').matchtag + 1\n",
            ),
        ),
    ),
    "extras": Trial(
        "pip install specwire with the extras that need no Java: captures, pages, strategies",
        (f"{{}}[{','.join(SMALL_EXTRAS)}]",),
        WHEEL,
        WITH_EXTRAS,
    ),
    "spark": Trial(
        "pip install 'specwire[spark]', with a capture of peers worked into tables",
        ("{}[spark]",),
        WHEEL,
        ON_SPARK,
    ),
}


def run_trial(trial: Trial, dist: Path) -> None:
    """Install and run; raises TrialError where something does not work."""
    found = sorted(dist.glob(trial.distribution))
    if len(found) != 1:
        raise TrialError(
            f"dist/ has {len(found)} files {trial.distribution}: build first, where there is a C compiler"
        )
    with tempfile.TemporaryDirectory(prefix="specwire-trial-") as folder:
        place = Place.make(Path(folder))
        place.pip(*(word.replace("{}", str(found[0])) for word in trial.install))
        if trial.then:
            place.pip(*trial.then)
        for command in trial.commands:
            place.run(*command)


@dataclass(frozen=True)
class Place:
    """An empty environment, and an empty folder to work in."""

    programs: Path
    work: Path
    home: Path

    @classmethod
    def make(cls, folder: Path) -> Place:
        """Make all of it below `folder`."""
        # The Python under the one that runs here, should that stand in an environment itself.
        base = str(getattr(sys, "_base_executable", sys.executable))
        environment = folder / "env"
        subprocess.run([base, "-m", "venv", str(environment)], check=True)
        place = cls(environment / "bin", folder / "work", folder / "home")
        place.work.mkdir()
        place.home.mkdir()
        return place

    @property
    def variables(self) -> dict[str, str]:
        """The environment of a user who has activated it: no Python path, no settings of ours."""
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("PYTHON", "SPECWIRE", "VIRTUAL_ENV", "PYTEST", "MYPY", "COV"))
        }
        path = os.pathsep.join([str(self.programs), os.environ.get("PATH", os.defpath)])
        return {**kept, "PATH": path, "VIRTUAL_ENV": str(self.programs.parent)}

    def pip(self, *words: str) -> None:
        """Have pip install something, with the user's own settings and cache."""
        quiet = ("-m", "pip", "install", "-q", "--no-input", "--disable-pip-version-check")
        self._call([str(self.programs / "python"), *quiet, *words], self.variables)

    def run(self, *command: str) -> str:
        """Run a command in the empty folder; return what it prints.

        Raises:
            TrialError: it does not end with status 0.
        """
        return self._call(
            [str(self.programs / command[0]), *command[1:]], {**self.variables, "HOME": str(self.home)}
        )

    def _call(self, command: list[str], variables: Mapping[str, str]) -> str:
        ran = subprocess.run(
            command,
            cwd=self.work,
            env=variables,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if ran.returncode != 0:
            raise TrialError(
                f"status {ran.returncode}: {' '.join(command)}\n{ran.stdout[-4000:]}{ran.stderr[-4000:]}"
            )
        return ran.stdout
