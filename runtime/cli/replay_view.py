"""What `specwire replay` prints: its outcome as a program reads it, and as a person does."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import msgspec

from specwire.runtime.cli.console import messages, wide_output
from specwire.runtime.log.text import show
from specwire.runtime.rehearsal.replay.playing import Outcome, Performance

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

SHOWN = 10
"""Differences that a person is shown; ``--json`` has more."""

REFRESH_S = 0.25


def describe_outcome(performance: Performance, outcome: Outcome) -> dict[str, Any]:
    """Return everything that was found, as JSON has it."""
    recording = performance.recording
    return {
        "protocol": recording.protocol,
        "tap": recording.tap,
        "side": performance.side,
        "endpoint": performance.endpoint,
        "messages_read": recording.messages,
        "cut": recording.cut,
        **msgspec.to_builtins(outcome),
    }


def print_outcome(performance: Performance, outcome: Outcome) -> None:
    """Write the outcome to standard output for a person."""
    from rich.text import Text

    console = wide_output()

    def line(text: str, style: str = "") -> None:
        console.print(Text(show(text), style=style), soft_wrap=True)

    recording = performance.recording
    line(
        f"{recording.protocol} as {performance.side} at {performance.endpoint}, recorded by {recording.tap}: "
        f"{outcome.conversations} conversations, {outcome.sent} messages sent",
        "bold",
    )
    if recording.cut:
        line(f"only the first {recording.messages} messages of the capture were read (--messages)")
    if outcome.stopped:
        line(f"{outcome.stopped} conversations were not begun")
    for reason, count in outcome.lost.items():
        line(f"lost {count} times: {show(reason)}")
    line(
        f"answers: {outcome.recorded} recorded, {outcome.live} live, {outcome.same} the same, "
        f"{outcome.differing} differ, {outcome.missing} missing, {outcome.extra} extra, "
        f"{outcome.unreadable} unreadable",
        "red" if outcome.failed else "green",
    )
    for found in outcome.differences[:SHOWN]:
        key = "".join(f" {value}" for value in found.key)
        place = f"{found.message}.{found.field}" if found.field else found.message
        line(f"  {found.kind}: {place}{show(key)}, conversation {show(found.conversation)}")
        if found.recorded:
            line(f"    recorded: {show(found.recorded)}")
        if found.live:
            line(f"    live:     {show(found.live)}")
    more = len(outcome.differences) - SHOWN
    if more > 0:
        line(f"  and {more} more; --json has them")


@contextmanager
def shown_progress(performance: Performance, outcome: Outcome) -> Iterator[None]:
    """Show on a terminal how many conversations were played."""
    console = messages()
    if not console.is_terminal:
        yield
        return
    from rich.progress import Progress

    with Progress(console=console, transient=True) as progress:
        task = progress.add_task("conversations", total=len(performance.recording.scripts))
        watching = asyncio.ensure_future(_refresh(progress, task, outcome))
        try:
            yield
        finally:
            watching.cancel()


async def _refresh(progress: Progress, task: TaskID, outcome: Outcome) -> None:
    while True:
        progress.update(task, completed=outcome.conversations)
        await asyncio.sleep(REFRESH_S)
