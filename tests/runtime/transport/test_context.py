"""The I/O threads of a context do not take the processor from who writes to them."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

import pytest
import zmq

from specwire.runtime.transport.context import TransportContext

DEADLINE_S = 30.0

pytestmark = pytest.mark.skipif(
    os.sched_getscheduler(0) != os.SCHED_OTHER, reason="the tests run in another class of the scheduler"
)


def threads() -> set[int]:
    return {int(path.name) for path in Path("/proc/self/task").iterdir()}


def classes_of_io_threads(wanted: int) -> set[int]:
    """Return the classes that a new context's threads have when they are `wanted`, or the time is over."""
    before = threads()
    context = TransportContext()
    socket = context.zmq.socket(zmq.DEALER)  # with the first one the threads begin
    try:
        ends_at = time.monotonic() + DEADLINE_S
        while True:
            found = {os.sched_getscheduler(thread) for thread in threads() - before}
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


def test_a_class_that_somebody_chose_stays() -> None:
    """Of a thread that is in another one."""

    def ask() -> set[int]:
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
        return classes_of_io_threads(os.SCHED_IDLE)

    assert asyncio.run(asyncio.to_thread(ask)) == {os.SCHED_IDLE}
