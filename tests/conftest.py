"""What all tests share: how golden files are renewed, no deadlines, and who runs the tests that need Spark.

`pytest --bless` writes what came out as what is expected. Tests that need Spark go to one worker.

Tests start some hundred processes. Python keeps what it compiles for them, whatever the environment says, and
neither Java nor Spark compiles for long runs: none lasts long enough to gain by that.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import settings

# A test says what is right, not how fast the machine is.
settings.register_profile("specwire", deadline=None)
settings.load_profile("specwire")

BRIEF_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
BRIEF_SPARK = Path(__file__).parent / "spark_defaults"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--bless`."""
    parser.addoption("--bless", action="store_true", help="write what came out as the expected files")


def pytest_configure(config: pytest.Config) -> None:
    """Tell golden tests whether they write or compare; see to it that an interrupt arrives and processes are quick.

    A shell starts a job in the background with SIGINT ignored, and every program inherits that.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if config.getoption("--bless"):
        os.environ["SPECWIRE_BLESS"] = "1"
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False
    for name in ("SPARK_LAUNCHER_OPTS", "SPARK_SUBMIT_OPTS"):
        os.environ.setdefault(name, BRIEF_JAVA)
    os.environ["SPARK_CONF_DIR"] = str(BRIEF_SPARK)


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
    """Give all tests that need Spark to one worker, and put them first; xdist reads the group after this.

    They share a session, and two Sparks at a time only hinder each other; the other worker has the tests of peers,
    which mostly wait, beside them.
    """
    for item in items:
        if _needs_spark(item):
            item.add_marker(pytest.mark.xdist_group("spark"))
    items.sort(key=lambda item: not _needs_spark(item))


def _needs_spark(item: pytest.Item) -> bool:
    """Whether a test starts Spark itself or by a fixture."""
    return item.get_closest_marker("spark") is not None or "spark" in getattr(item, "fixturenames", ())


@pytest.fixture(scope="session", autouse=True)
def one_import_name() -> Iterator[None]:
    """Fail when a test imported a top folder under its bare name: every class in it would exist twice."""
    yield
    strays = {"generator", "generated", "runtime"} & sys.modules.keys()
    assert not strays, f"imported without `specwire.` in front: {', '.join(sorted(strays))}"
