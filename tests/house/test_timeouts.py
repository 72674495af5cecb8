"""Timeouts: a test that hangs fails alone, wherever it hangs, and the tests after it run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.house.repository import ROOT

HANGING = {
    "asleep": """
def test_hangs():
    time.sleep(600)
""",
    "waiting for a thread": """
def test_hangs():
    threading.Event().wait()
""",
    "in a socket": """
def test_hangs():
    one, other = socket.socketpair()
    one.recv(1)
""",
    "in an event loop that waits": """
def test_hangs():
    asyncio.run(asyncio.sleep(600))
""",
    "in a callback of an event loop, which catches its exception and continues": """
def test_hangs():
    loop = asyncio.new_event_loop()
    loop.call_soon(time.sleep, 600)
    loop.run_forever()
""",
    "in an example of hypothesis, which repeats it": """
@settings(deadline=None, database=None)
@given(st.integers())
def test_hangs(number):
    while number > 100:
        time.sleep(0.01)
""",
    "in the teardown of a fixture": """
@pytest.fixture
def hanging():
    yield
    time.sleep(600)

def test_hangs(hanging):
    raise AssertionError("a failure stops the timer")
""",
}
HEAD = """
import asyncio, socket, threading, time
import pytest
from hypothesis import given, settings, strategies as st
"""
NEXT = """

def test_next():
    pass
"""


def test_a_test_that_hangs_fails_alone(tmp_path: Path) -> None:
    """Runs pytest with xdist workers and `tests/conftest.py` as a plugin, which sets the timer."""
    for number, text in enumerate(HANGING.values()):
        (tmp_path / f"test_{number}.py").write_text(HEAD + text + NEXT, encoding="utf-8")
    (tmp_path / "conftest.py").write_text("from tests import conftest\nconftest.AGAIN_S = 0.3\n")
    command = [sys.executable, "-m", "pytest", "-c", "/dev/null", "--rootdir", "."]
    command += ["-p", "tests.conftest", "-p", "no:cacheprovider", "-n", "2", "-q", "-rA", "--timeout=0.5"]
    run = subprocess.run(
        command,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    lines = run.stdout.splitlines()
    assert run.returncode == 1 and not any("crashed" in line for line in lines), run.stdout + run.stderr
    for number, where in enumerate(HANGING):
        failed = [
            line for line in lines if line.startswith(("FAILED", "ERROR")) and f" test_{number}.py" in line
        ]
        assert failed and all(f"test_{number}.py::test_hangs" in line for line in failed), (
            f"{where}\n{run.stdout}"
        )
        assert f"PASSED test_{number}.py::test_next" in lines, f"{where}\n{run.stdout}"


def test_every_test_has_a_timeout(pytestconfig: pytest.Config) -> None:
    """`make soak` disables the timeout, for tests that take an hour."""
    assert 0 < float(pytestconfig.getini("timeout")) <= 300
    assert pytestconfig.getini("timeout_method") == "signal"
