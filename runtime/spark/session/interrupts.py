"""An interrupt that is never lost.

Python raises KeyboardInterrupt wherever the main thread happens to be. Where that is one of py4j's finalizers
or clean-ups, which swallow every exception, the interrupt is gone and the job goes on. So the signal is
also remembered, and raised again at the next step or at the end.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Interrupts:
    """Whether the user has interrupted the work."""

    def __init__(self) -> None:
        self._seen = False

    def note(self, number: int, frame: FrameType | None) -> None:
        """Handle the signal: remember it, and raise KeyboardInterrupt."""
        self._seen = True
        raise KeyboardInterrupt

    def heed(self) -> None:
        """Raise KeyboardInterrupt if there was one."""
        if self._seen:
            raise KeyboardInterrupt


@contextmanager
def heeded_interrupts() -> Iterator[Interrupts]:
    """Remember interrupts for the time of a block, which cannot end well after one.

    Where signals are not this thread's, or somebody else handles them, they are left alone.
    """
    interrupts = Interrupts()
    ours = (
        threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    )
    if not ours:
        yield interrupts
        return
    signal.signal(signal.SIGINT, interrupts.note)
    try:
        yield interrupts
        interrupts.heed()
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
