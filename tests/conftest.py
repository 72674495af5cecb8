"""What all tests share: how golden files are renewed, no deadlines, and who runs the tests that need Spark.

`pytest --bless` writes what came out as what is expected. Tests marked `spark` share one session, which
takes seconds to start, so with two workers they all go to the same one.

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
    """Give every test that uses the shared Spark session to one worker; xdist reads the group after this.

    Those that start Spark in processes of their own stay together file by file, on whichever worker has time.
    """
    for item in items:
        if item.get_closest_marker("spark"):
            shared = "spark" in getattr(item, "fixturenames", ())
            item.add_marker(pytest.mark.xdist_group("spark" if shared else f"Spark of {item.path.stem}"))


@pytest.fixture(scope="session", autouse=True)
def one_import_name() -> Iterator[None]:
    """Fail when a test imported a top folder under its bare name: every class in it would exist twice."""
    yield
    strays = {"generator", "generated", "runtime"} & sys.modules.keys()
    assert not strays, f"imported without `specwire.` in front: {', '.join(sorted(strays))}"
