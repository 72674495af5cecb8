"""What `specwire peer` prints: its report as a program reads it, and as a person does."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from specwire.runtime.cli.console import messages, wide_output
from specwire.runtime.log.text import show
from specwire.runtime.quantities import show_count
from specwire.runtime.rehearsal.stage import Stage

if TYPE_CHECKING:
    from rich.status import Status

SHOWN = 10
"""Findings of a sort that a person is shown; ``--json`` has more."""

REFRESH_S = 0.25


def describe_report(stage: Stage, seed: int, endpoint: str) -> dict[str, Any]:
    """Return everything that was found, as JSON has it."""
    said = {"protocol": stage.language.name, "role": stage.role, "seed": seed, "endpoint": endpoint}
    return said | stage.tally.to_dict()


def print_report(report: Mapping[str, Any]) -> None:
    """Write the report to standard output for a person."""
    from rich.text import Text

    console = wide_output()

    def line(text: str, style: str = "") -> None:
        console.print(Text(show(text), style=style), soft_wrap=True)

    ended = report["ended"]
    words = [f"{count} {name.replace('_', ' ')}" for name, count in ended.items() if count]
    line(
        f"{report['protocol']} as {report['role']} at {report['endpoint']}, seed {report['seed']}: "
        f"{show_count(report['conversations'], 'conversation')} ({', '.join(words) or 'none ended'})",
        "bold",
    )
    line(f"said:  {_counts(report['sent'])}")
    line(f"heard: {_counts(report['received'])}")
    line(f"answers: {report['answered']}, missing: {report['unanswered']}, late messages: {report['late']}")
    for reason, count in report["lost_because"].items():
        line(f"lost {show_count(count, 'time')}: {show(reason)}")
    for request in report["unanswered_requests"][:SHOWN]:
        key = "".join(f" {name}={value}" for name, value in request["key"].items())
        line(f"  no answer to {request['message']}{show(key)} within {request['waited_s']:g} s")
    if report["broken"]:
        line(
            f"broken messages: {report['broken']}, answered otherwise than expected: {report['unexpected_reactions']}"
        )
        for row in report["faults"]:
            line(f"  {row['fault']}: {row['answer']} ({row['count']})")
        for reaction in [found for found in report["reactions"] if not found["as_expected"]][:SHOWN]:
            line(
                f"  {reaction['message']}, {reaction['fault']}, {show(reaction['detail'])}: expected "
                f"{' or '.join(reaction['expected'])}, but: {reaction['answer']}"
            )
    wrong = report["violations"] + report["unreadable"]
    line(f"against the machine: {wrong or 'nothing'}", "red" if wrong else "green")
    for finding in report["findings"][:SHOWN]:
        line(f"  conversation {finding['conversation']}: {show(finding['said'])}")
        line(f"    {' | '.join(finding['frames'])}")
    more = wrong - min(SHOWN, len(report["findings"]))
    if more > 0:
        line(f"  and {more} more; --json has the first 100")


@contextmanager
def shown_progress(stage: Stage) -> Iterator[None]:
    """Say on a terminal how the talk goes, while it does."""
    console = messages()
    if not console.is_terminal:
        yield
        return
    with console.status("") as status:
        watching = asyncio.ensure_future(_refresh(stage, status))
        try:
            yield
        finally:
            watching.cancel()


async def _refresh(stage: Stage, status: Status) -> None:
    while True:
        tally = stage.tally
        said, heard = sum(tally.sent.values()), sum(tally.received.values())
        status.update(
            f"said {said}, heard {heard}, against the machine {tally.violations + tally.unreadable}"
        )
        await asyncio.sleep(REFRESH_S)


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.items()) or "nothing"
