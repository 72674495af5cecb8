"""Log of a server without events: lines on standard error, as text or as objects."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from specwire.runtime.cli.console import print_error
from specwire.runtime.log.form import LogForm


@contextmanager
def plain_log(role: str, form: LogForm) -> Iterator[Callable[[str], None]]:
    """Yield a function that writes a line to the log. Records of our loggers go there, too."""
    if form is LogForm.TEXT:
        from specwire.runtime.log.lines import OURS, take_over

        handler = take_over(print_error)
        try:
            yield print_error
        finally:
            OURS.removeHandler(handler)
        return
    from specwire.runtime.log.serverlog import ServerLog
    from specwire.runtime.log.stamp import Stamp

    log = ServerLog(print_error, Stamp(role, form), form)
    try:
        yield log.line
    finally:
        log.close()
