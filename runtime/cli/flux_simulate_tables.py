"""The report of a simulation as a person reads it: a table for each thing that was measured."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.text import Text

from specwire.runtime.cli.console import new_table, output, wide_output
from specwire.runtime.flux.simulate.report import LoadReport, Quantiles, Report

NOTHING = "-"


def print_report(report: Report) -> None:
    """Write a report to standard output."""
    title = f"{report.title}: " if report.title else ""
    shape = f"{report.size:,} brokers, fan-out {report.fanout}, {report.height} levels below rank 0"
    _say(f"{title}{shape}, {report.duration_s:g} s, seed {report.seed}")
    _say(
        f"start: all joined after {show_time(report.start.joined_s)}, rank 0 saw full after {show_time(report.start.full_s)}"
    )
    _print_loads(report.rpc)
    _print_events(report)
    _print_faults(report)
    _print_levels(report)
    told = ", ".join(f"{kind} {number:,}" for kind, number in report.told.items())
    _say(f"brokers told of: {told}")


def _print_loads(loads: Sequence[LoadReport]) -> None:
    for load in loads:
        errors = ", ".join(f"{number:,} {name}" for name, number in load.errors.items()) or "no errors"
        _say("")
        _say(
            f"RPC {load.topic} to {load.to}: {load.asked:,} asked, {load.answered:,} answered, {errors}, "
            f"{load.died:,} died with their broker, {load.open:,} open, {load.repeated:,} answered twice"
        )
        if load.latency is not None:
            rows = [(f"{each.hops}", each.latency) for each in load.hops]
            _print_quantiles("hops", [*rows, ("all", load.latency)])


def _print_quantiles(name: str, rows: Sequence[tuple[str, Quantiles]]) -> None:
    _print_table(
        (name, "number", "least", "p50", "p90", "p99", "most"),
        [
            (label, f"{of.number:,}", *map(show_time, (of.least_s, of.p50_s, of.p90_s, of.p99_s, of.most_s)))
            for label, of in rows
        ],
    )


def _print_events(report: Report) -> None:
    if not report.events:
        return
    _say("")
    _say("events, from rank 0 to the last broker")
    _print_table(
        ("topic", "number", "to all", "fewest brokers", "p50", "p99", "most", "to clients"),
        [
            (
                events.topic,
                f"{events.number:,}",
                f"{events.complete:,}",
                f"{events.least_reached:,}",
                *(
                    (NOTHING,) * 3
                    if events.fan_out is None
                    else map(show_time, (events.fan_out.p50_s, events.fan_out.p99_s, events.fan_out.most_s))
                ),
                f"{events.to_clients:,}",
            )
            for events in report.events
        ],
        left=1,
    )


def _print_faults(report: Report) -> None:
    if not report.faults:
        return
    _say("")
    _say("faults, with times since each began")
    _print_table(
        (
            "fault",
            "at",
            "brokers",
            "pending",
            "answered",
            "failed",
            "last",
            "noticed",
            "all joined",
            "full again",
        ),
        [
            (
                fault.kind,
                show_time(fault.at_s),
                f"{fault.brokers:,}",
                f"{fault.pending:,}",
                show_time(fault.answered_s),
                f"{fault.failed:,}",
                *map(show_time, (fault.failed_s, fault.noticed_s, fault.joined_s, fault.full_s)),
            )
            for fault in report.faults
        ],
        left=1,
    )


def _print_levels(report: Report) -> None:
    _say("")
    _say(f"messages between brokers: {report.messages:,} received")
    _print_table(
        ("level", "brokers", "received", "by each", "most", "sent", "by each", "most"),
        [
            (
                f"{level.level}",
                f"{level.brokers:,}",
                f"{level.received:,}",
                f"{level.received / level.brokers:,.1f}",
                f"{level.most_received:,}",
                f"{level.sent:,}",
                f"{level.sent / level.brokers:,.1f}",
                f"{level.most_sent:,}",
            )
            for level in report.levels
        ],
    )


def show_time(time_s: float | None) -> str:
    """Return a duration with the unit that fits it."""
    if time_s is None:
        return NOTHING
    for unit, size_s in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if time_s >= size_s * 0.9995:
            return f"{time_s / size_s:.4g} {unit}"
    return "0 s" if time_s == 0 else f"{time_s / 1e-6:.3g} µs"


def _print_table(names: Sequence[str], rows: Sequence[Sequence[str]], left: int = 0) -> None:
    table = new_table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for number, name in enumerate(names):
        table.add_column(name, justify="left" if number < left else "right", no_wrap=True)
    for row in rows:
        table.add_row(*map(Text, row))
    wide_output().print(table)


def _say(text: str) -> None:
    output().print(Text(text), soft_wrap=True)
