"""What is installed into an empty environment, and what must work there.

Each trial has pip install one distribution of ``dist/`` and runs commands, in a `Place` of its own.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from trial_places import Place, TrialError

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


def _python(code: str) -> tuple[str, ...]:
    return "python", "-c", code


def _specwire(words: str) -> tuple[str, ...]:
    return "specwire", *words.split()


COMMANDS = (
    _specwire("--version"),
    _specwire("doctor"),
    _specwire("check zre"),
    _specwire("decode zre aaa106020001"),
    _specwire("generate zre --out wire"),
    _python(OWN_PACKAGE),
    _specwire("flux start --size 3 -- specwire flux overlay status"),
)
"""What a plain installation does: the generator, a codec, and peers on loopback."""

SMALL_EXTRAS = ("capture", "norfab", "metrics", "testing", "docs")
"""Those that need no Java."""

WITH_EXTRAS = (
    _specwire("doctor " + " ".join(f"--need {extra}" for extra in SMALL_EXTRAS)),
    _specwire("generate zre --target reference --out pages"),
    _python("from specwire.generated.zre import strategies; strategies.messages().example()"),
    _specwire("flux start --size 2 --capture captures -- specwire flux ping --count 3 1"),
    _specwire("decode captures --limit 5"),
    _specwire("capture list captures"),
)

ON_SPARK = (
    _specwire("doctor --need spark --need java --need arrow"),
    _specwire("flux start --size 2 --capture captures -- specwire flux ping --count 3 1"),
    _specwire("pipeline run --capture captures --out tables"),
    _python(TABLES),
)


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


def run_trial(trial: Trial, dist: Path, python: str | None = None) -> None:
    """Install and run, with the Python that runs here or another; raises TrialError where something does not work."""
    found = sorted(dist.glob(trial.distribution))
    if len(found) != 1:
        raise TrialError(
            f"dist/ has {len(found)} files {trial.distribution}: build first, where there is a C compiler"
        )
    with tempfile.TemporaryDirectory(prefix="specwire-trial-") as folder:
        place = Place.make(Path(folder), python)
        place.pip(*(word.replace("{}", str(found[0])) for word in trial.install))
        if trial.then:
            place.pip(*trial.then)
        for command in trial.commands:
            place.run(*command)
