"""An interrupt that is never lost.

Python raises KeyboardInterrupt wherever the main thread happens to be. Where that is a clean-up, which swallows every
exception, the interrupt is gone and the job goes on. So the signal is also remembered, and raised again at the next
step or at the end. And where it is py4j's clean-up after an object of Java, Python would print the trace of what it
swallows: there nothing is raised, and the signal is sent once more when that is over.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

AGAIN_S = 0.05
"""After so long a clean-up of py4j, which takes microseconds, is over."""

_CLEAN_UPS = ("_garbage_collect_object", "_garbage_collect_connection")
"""What py4j calls when Python has no use for an object of Java any more, wherever the program then is."""


class Interrupts:
    """Whether the user has interrupted the work."""

    def __init__(self) -> None:
        self._seen = False
        self._again: threading.Timer | None = None

    def note(self, number: int, frame: FrameType | None) -> None:
        """Handle the signal: remember it, and raise KeyboardInterrupt, or see to it that it comes again."""
        self._seen = True
        if not _cleans_up(frame):
            raise KeyboardInterrupt
        self.end()
        self._again = threading.Timer(AGAIN_S, signal.pthread_kill, (threading.get_ident(), number))
        self._again.daemon = True
        self._again.start()

    def heed(self) -> None:
        """Raise KeyboardInterrupt if there was one."""
        if self._seen:
            raise KeyboardInterrupt

    def end(self) -> None:
        """Send no signal any more."""
        if self._again is not None:
            self._again.cancel()
            self._again.join()


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
    except Exception:
        # What was broken off fails in its own way, and then that is what is raised.
        interrupts.heed()
        raise
    else:
        interrupts.heed()
    finally:
        interrupts.end()
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _cleans_up(frame: FrameType | None) -> bool:
    """Whether the frame is of a clean-up of py4j, or of what that calls."""
    while frame is not None:
        code = frame.f_code
        if code.co_name in _CLEAN_UPS and "py4j" in Path(code.co_filename).parts:
            return True
        frame = frame.f_back
    return False
