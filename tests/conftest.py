"""Configuration of all tests: golden files, timeouts, and the workers that run the Spark tests.

`pytest --bless` writes what came out as what is expected. Tests that share a Spark session form two
groups, each of which one worker runs.

Every test has a timeout (`timeout` in pyproject.toml, by pytest-timeout). Its signal raises an
exception in the test. An event loop catches an exception of a callback, and hypothesis repeats an
example that failed. So the signal is repeated every `AGAIN_S` seconds until the test has ended.
Hypothesis has no deadline for an example.

Tests start some hundred processes. Python keeps what it compiles for them, whatever the environment says, and
neither Java nor Spark compiles for long runs: none lasts long enough to gain by that.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from tests.examples import examples

pytest_plugins = ["tests.spark_session", "tests.runtime.spark.outputs"]

# A test says what is right, not how fast the machine is.
settings.register_profile("specwire", deadline=None, max_examples=examples(40))
settings.load_profile("specwire")

# A session that all tests share comes to more code than the quick compiler keeps by itself, 48 MB: it would throw away and
# compile again, for an eighth of all the time that Java takes. And Spark's own classes are not verified anew at each start,
# an eighth of what a start takes.
BRIEF_JAVA = (
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=240m"
    " -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
)
BRIEF_JAVAC = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Options of Java with which its compiler takes half the time, for the variable `JAVA_TOOL_OPTIONS`."""
BRIEF_SPARK = Path(__file__).parent / "spark_defaults"

QUICK_SPARK = ("SPARK_LAUNCHER_OPTS", "SPARK_SUBMIT_OPTS", "SPARK_CONF_DIR")
"""Environment variables by which the Spark of a test starts sooner and plans faster."""

QUERIES = frozenset({"answers", "decoding", "reading", "cluster"})
"""Folders of Spark tests in the first group, which also reads `one_run` (tests/runtime/spark/outputs.py).

The second group runs the pipeline. Each takes about half of the time.
"""

AGAIN_S = 20.0
"""Seconds between two interrupts of a test that exceeded its timeout."""
TIMEOUT = pytest.StashKey[Any]()

LONGEST_ID = 150
"""Characters of a text that is a parameter, in the name of its test."""

LONGEST_ROOT = 24
"""Octets of the folder for temporary files: the name of a socket has 107, of which pytest's folders and the test take 80."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--bless`."""
    parser.addoption("--bless", action="store_true", help="write what came out as the expected files")


def pytest_configure(config: pytest.Config) -> None:
    """Tell golden tests whether they write or compare; see to it that an interrupt arrives and processes are quick.

    A shell starts a job in the background with SIGINT ignored, and every program inherits that. Where temporary files
    have long names, those of tests go to /tmp, sockets among them.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if config.getoption("--bless"):
        os.environ["SPECWIRE_BLESS"] = "1"
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False
    if len(os.fsencode(tempfile.gettempdir())) > LONGEST_ROOT and os.access("/tmp", os.W_OK):
        os.environ["TMPDIR"], tempfile.tempdir = "/tmp", None
    launcher, submit, settings = QUICK_SPARK
    os.environ.setdefault(launcher, BRIEF_JAVA)
    os.environ.setdefault(submit, BRIEF_JAVA)
    os.environ[settings] = str(BRIEF_SPARK)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect tests without collecting garbage: all that is made stays to the end, and need never be looked at."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Group the tests of the shared Spark session, and begin with what takes longest.

    The two groups are first: they are the longest units. Tests that start Spark in other processes follow, then slow
    ones, so that no worker begins a long module when the others are done.
    """
    slow = {item.path for item in items if item.get_closest_marker("slow") is not None}
    grouped = {item for item in items if _shares_spark(item)}
    for item in grouped:
        queries = not QUERIES.isdisjoint(item.path.parts) or "one_run" in getattr(item, "fixturenames", ())
        item.add_marker(pytest.mark.xdist_group("spark queries" if queries else "spark runs"))

    def rank(item: pytest.Item) -> int:
        if item in grouped:
            return 0
        if item.get_closest_marker("spark") is not None:
            return 1
        return 2 if item.path in slow else 3

    items.sort(key=rank)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Return the scheduler of `--dist loadgroup`, which pyproject.toml chooses."""
    if config.getoption("dist") != "loadgroup":
        return None
    from tests.scheduling import ModuleScheduling

    return ModuleScheduling(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_timeout_set_timer(item: pytest.Item, settings: Any) -> Generator[None, object, object]:
    """Make the timer that pytest-timeout has set a repeating one."""
    item.stash[TIMEOUT] = settings
    result = yield
    if settings.method == "signal":
        signal.setitimer(signal.ITIMER_REAL, settings.timeout, AGAIN_S)
    return result


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[Any]) -> None:
    """Stop the timer of a phase that failed: writing its report may take longer than `AGAIN_S`."""
    if call.excinfo is not None and TIMEOUT in item.stash:
        signal.setitimer(signal.ITIMER_REAL, 0)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> None:
    """Set the timer again: a failed test has stopped it, and the teardown of fixtures may hang."""
    if TIMEOUT in item.stash:
        item.ihook.pytest_timeout_set_timer(item=item, settings=item.stash[TIMEOUT])


def pytest_make_parametrize_id(val: object) -> str | None:
    """Name a long text by its beginning: names go from worker to worker with each report, and one may have megabytes."""
    return f"{val[:LONGEST_ID]}..." if isinstance(val, str) and len(val) > LONGEST_ID else None


def _shares_spark(item: pytest.Item) -> bool:
    """Whether a test uses the session that is shared, or what the tests of clusters share."""
    fixtures = getattr(item, "fixturenames", ())
    of_clusters = item.get_closest_marker("spark") is not None and not {"server", "package"}.isdisjoint(
        fixtures
    )
    return "spark" in fixtures or of_clusters


@pytest.fixture(scope="session", autouse=True)
def one_import_name() -> Iterator[None]:
    """Fail when a test imported a top folder under its bare name: every class in it would exist twice."""
    yield
    strays = {"generator", "generated", "runtime"} & sys.modules.keys()
    assert not strays, f"imported without `specwire.` in front: {', '.join(sorted(strays))}"
