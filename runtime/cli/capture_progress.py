"""Progress of work on a capture: a bar on a terminal, and nothing elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from specwire.runtime.cli.console import messages

if TYPE_CHECKING:
    from specwire.runtime.capture.compact import Progress


@contextmanager
def show_progress() -> Iterator[Progress | None]:
    """Give what is told how far the work is; None where nobody would see it."""
    console = messages()
    if not console.is_terminal:
        yield None
        return
    from rich.progress import Progress as Bar

    with Bar(console=console, transient=True) as bar:
        task = bar.add_task("", total=None)
        yield lambda step, done, total: bar.update(task, description=step, completed=done, total=total)
