"""Progress of work on a capture: a bar on a terminal, and nothing elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from specwire.runtime.cli.console import messages


@contextmanager
def counting(description: str) -> Iterator[Callable[[int, int], None]]:
    """Give what is told how many are done, of how many."""
    console = messages()
    if not console.is_terminal:
        yield lambda done, total: None
        return
    from rich.progress import Progress

    with Progress(console=console, transient=True) as bar:
        task = bar.add_task(description, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
