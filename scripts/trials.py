"""Trials of the distributions: each installs one into an empty environment and runs commands.

pip installs a file of ``dist/`` into a `Place` for this trial only.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from interpreters import Interpreter
from trial_places import Place, TrialError

WHEEL, PURE_WHEEL, ARCHIVE = "specwire-*-{tag}-*.whl", "specwire-*-py3-none-any.whl", "specwire-*.tar.gz"
"""Names of distributions, as patterns; ``{tag}`` is that of the interpreter, such as ``cp312``."""

WHEEL_TRIAL = "wheel"
"""The trial that runs with every interpreter."""

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
from pathlib import Path
import specwire.generated.zre
for path in Path(specwire.generated.zre.__file__).parent.glob("*.py"):
    assert Path("wire/zre", path.name).read_bytes() == path.read_bytes(), path.name
"""
"""The package that was generated here has the octets of the one that specwire brings."""

TABLES = """
from pathlib import Path
assert Path("tables/report.html").stat().st_size > 10_000
assert list(Path("tables").rglob("*.parquet"))
"""


def _python(code: str) -> tuple[str, ...]:
    return "python", "-c", code


def _specwire(words: str) -> tuple[str, ...]:
    return "specwire", *words.split()


PLAIN = (
    _specwire("--version"),
    _specwire("doctor"),
    _specwire("decode zre aaa106020001"),
    _python(NEEDS_LITTLE),
)
"""What a plain installation does: the command line, and a codec."""

GENERATING = (_specwire("check zre"), _specwire("generate zre --out wire"), _python(OWN_PACKAGE))

COMMANDS = (*PLAIN, *GENERATING, _specwire("flux start --size 3 -- specwire flux overlay status"))
"""What the extras `compile` and `peers` do: the generator, and peers on loopback."""

SMALL_EXTRAS = ("compile", "capture", "norfab", "metrics", "testing", "docs")
"""Those that need no Java."""

USER_EXTRAS = (*SMALL_EXTRAS, "connect")
"""Extras that together contain every extra for users."""

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
    """Arguments of ``pip install``; ``{}`` is replaced by the path of the distribution."""
    distribution: str
    """Its name in ``dist/``, as a pattern."""
    commands: tuple[tuple[str, ...], ...]
    then: tuple[str, ...] = ()
    """Arguments of a second ``pip install``."""


TRIALS: Mapping[str, Trial] = {
    "bare": Trial(
        "a generated package with msgspec, and nothing else that specwire needs",
        ("--no-deps", "{}"),
        WHEEL,
        (_python(NEEDS_LITTLE), _python(BUILDS.format(True))),
        then=("msgspec",),
    ),
    "plain": Trial(
        "pip install specwire: the command line and the packages",
        ("{}",),
        WHEEL,
        PLAIN,
    ),
    WHEEL_TRIAL: Trial(
        "the compiler and peers, with codecs in C",
        ("{}[compile,peers]",),
        WHEEL,
        (_python(BUILDS.format(True)), *COMMANDS),
    ),
    "pure": Trial(
        "the same from the wheel without C",
        ("{}[compile,peers]",),
        PURE_WHEEL,
        (_python(BUILDS.format(False)), *COMMANDS),
    ),
    "archive": Trial(
        "the same from the source archive, which pip compiles",
        ("{}[compile,peers]",),
        ARCHIVE,
        (_python(BUILDS.format(True)), *COMMANDS),
    ),
    "beside": Trial(
        "the compiler beside other releases of ruff and Construct: the same generated code",
        ("{}[compile]", "ruff==0.16.0", "construct==2.10.68"),
        WHEEL,
        GENERATING,
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
        "pip install 'specwire[capture,spark]', with a capture of peers made into tables",
        ("{}[capture,spark]",),
        WHEEL,
        ON_SPARK,
    ),
}


def run_trial(trial: Trial, dist: Path, interpreter: Interpreter) -> None:
    """Install and run with one interpreter; raises TrialError if something does not work."""
    pattern = trial.distribution.format(tag=interpreter.tag)
    found = sorted(dist.glob(pattern))
    if len(found) != 1:
        raise TrialError(f"dist/ has {len(found)} files {pattern}: build first, where there is a C compiler")
    with tempfile.TemporaryDirectory(prefix="specwire-trial-") as folder:
        place = Place.make(Path(folder), interpreter.program)
        place.pip(*(word.replace("{}", str(found[0])) for word in trial.install))
        if trial.then:
            place.pip(*trial.then)
        for command in trial.commands:
            place.run(*command)
