"""Handler that never loses an interrupt.

Python raises KeyboardInterrupt at the current position of the main thread. If that is a clean-up
that swallows every exception, the interrupt is lost and the job continues. So the handler also
records the signal, and raises it again at the next step or at the end. In py4j's clean-up of a Java
object, Python would print the traceback of the swallowed exception. There the handler raises
nothing, and sends the signal again after the clean-up.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

AGAIN_S = 0.05
"""Time in seconds after which a clean-up of py4j, which takes microseconds, has ended."""

_CLEAN_UPS = ("_garbage_collect_object", "_garbage_collect_connection")
"""Functions that py4j calls, at any time, when Python releases a Java object."""


class Interrupts:
    """Record of whether the user has interrupted the work."""

    def __init__(self) -> None:
        self._seen = False
        self._again: threading.Timer | None = None

    def note(self, number: int, frame: FrameType | None) -> None:
        """Record the signal, and raise KeyboardInterrupt.

        In a clean-up of py4j, send it again later.
        """
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
        """Stop sending signals."""
        if self._again is not None:
            self._again.cancel()
            self._again.join()


@contextmanager
def heeded_interrupts() -> Iterator[Interrupts]:
    """Record interrupts during a block; after an interrupt, the block always ends with an error.

    Signals are not handled here if this is not the main thread or another handler is installed.
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
        # The interrupted call may fail with another error, and then that error is raised.
        interrupts.heed()
        raise
    else:
        interrupts.heed()
    finally:
        interrupts.end()
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _cleans_up(frame: FrameType | None) -> bool:
    """Return whether the frame is in a clean-up of py4j, or in a function called by one."""
    while frame is not None:
        code = frame.f_code
        if code.co_name in _CLEAN_UPS and "py4j" in Path(code.co_filename).parts:
            return True
        frame = frame.f_back
    return False
