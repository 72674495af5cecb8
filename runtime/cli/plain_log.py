"""The log of a server that has no events to tell of: lines on standard error, as they are or as objects."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from specwire.runtime.cli.console import print_error
from specwire.runtime.log.form import LogForm


@contextmanager
def plain_log(role: str, form: LogForm) -> Iterator[Callable[[str], None]]:
    """Return what writes a line; where the log is for programs, what our modules log is an object in it, too."""
    if form is LogForm.TEXT:
        yield print_error
        return
    from specwire.runtime.log.serverlog import ServerLog
    from specwire.runtime.log.stamp import Stamp

    log = ServerLog(print_error, Stamp(role, form), form)
    try:
        yield log.line
    finally:
        log.close()
