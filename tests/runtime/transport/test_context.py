"""The I/O threads of a context do not take the processor from who writes to them."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
import zmq

from specwire.runtime.transport.context import TransportContext

DEADLINE_S = 60.0
ROOT = Path(__file__).parents[3]
TASKS = Path("/proc/self/task")

pytestmark = pytest.mark.skipif(
    os.sched_getscheduler(0) != os.SCHED_OTHER, reason="the tests run in another class of the scheduler"
)


def io_threads() -> set[int]:
    """Return the threads of libzmq, by the name that it gives them."""
    found = set()
    for path in TASKS.iterdir():
        with suppress(OSError):  # it has just ended
            if (path / "comm").read_text().startswith("ZMQbg"):
                found.add(int(path.name))
    return found


def classes_of_io_threads(wanted: int) -> set[int]:
    """Return the classes that a new context's threads have when they are `wanted`, or the time is over."""
    before = io_threads()
    context = TransportContext()
    socket = context.zmq.socket(zmq.DEALER)  # with the first one the threads begin
    try:
        ends_at = time.monotonic() + DEADLINE_S
        while True:
            found = {os.sched_getscheduler(thread) for thread in io_threads() - before}
            if found == {wanted} or time.monotonic() > ends_at:
                return found
            time.sleep(0.001)
    finally:
        socket.close(linger=0)
        asyncio.run(context.close())


def test_io_threads_are_of_the_class_for_batches() -> None:
    assert classes_of_io_threads(os.SCHED_BATCH) == {os.SCHED_BATCH}
    assert os.sched_getscheduler(0) == os.SCHED_OTHER


def test_where_the_system_refuses_it_they_are_as_all_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """libzmq would end the process."""

    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "sched_setscheduler", refuse)
    assert classes_of_io_threads(os.SCHED_OTHER) == {os.SCHED_OTHER}


CHOSEN = """
import os
from tests.runtime.transport.test_context import classes_of_io_threads
print(*classes_of_io_threads(os.SCHED_IDLE))
"""


def test_a_class_that_somebody_chose_stays() -> None:
    """Of a program that was started in another one, as by ``chrt --idle 0``."""
    start = "import os, sys; os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0)); os.execv(sys.executable, sys.argv[1:])"
    command = [sys.executable, "-c", start, sys.executable, "-c", CHOSEN]
    run = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=2 * DEADLINE_S, check=True
    )
    assert run.stdout.split() == [str(os.SCHED_IDLE)]
