"""The tables of the report that tell of the answers: findings as rows of texts."""

from __future__ import annotations

from specwire.runtime.spark.pipeline.summary import UNDECODED
from specwire.runtime.spark.protocols import role_name
from specwire.runtime.spark.report.figures import count_text, micros_text, size_text, span_text
from specwire.runtime.spark.report.found import Findings, Topic
from specwire.runtime.spark.report.tables import Table, clock_text

SILENCES_SHOWN = 20
SILENCES = {"again": "spoke again", "silent": "silent to the end", "gone": "given up"}
"""What came of a silence."""
WORDS = {"transfer": "(files)"}
"""Stand where something has no topic."""


def topic_table(findings: Findings) -> Table | None:
    """Return what was asked for, the slowest first; None where nothing was."""
    if not findings.topics:
        return None
    rows = tuple(
        (
            _topic_text(item),
            item.protocol,
            *map(count_text, (item.begun, item.answered, item.errors, item.unanswered)),
            *map(_took, (item.p50_us, item.p99_us, item.max_us)),
        )
        for item in findings.topics
    )
    head = ("Topic", "Protocol", "Asked", "Answered", "Errors", "Given up", "Median", "99 %", "Longest")
    return Table("Slowest topics", "By the time in which 99 of 100 were answered.", 2, head, rows)


def file_table(findings: Findings) -> Table | None:
    """Return the largest files that were sent; None where there were none."""
    if not findings.files:
        return None
    rows = tuple(
        (
            item.filename,
            item.peer or "",
            item.outcome,
            size_text(item.octets),
            _took(item.duration_us),
            "" if item.octets_per_s is None else f"{size_text(round(item.octets_per_s))}/s",
            count_text(item.stalls),
            _took(item.stalled_us),
        )
        for item in findings.files
    )
    note = "Stalls are times in which the credit was used up in the middle of a file."
    head = ("File", "Peer", "Outcome", "Octets", "Took", "Speed", "Stalls", "Stalled")
    return Table("Largest files", note, 3, head, rows)


def silence_table(findings: Findings) -> Table | None:
    """Return the longest silences; None where there were none."""
    if not findings.silences:
        return None
    found = findings.silences[:SILENCES_SHOWN]
    dated = len({item.ts.date() for item in found}) > 1
    rows = tuple(
        (
            item.peer or item.conversation,
            role_name(item.protocol, item.sender),
            clock_text(item.ts.isoformat(timespec="milliseconds"), dated=dated),
            SILENCES.get(item.outcome, item.outcome),
            span_text(item.silent_s),
        )
        for item in found
    )
    head = ("Peer", "Silent side", "Since (UTC)", "Then", "For")
    return Table(
        "Longest silences",
        "Of sides that said nothing for longer than their protocol lets pass.",
        4,
        head,
        rows,
    )


def violation_table(findings: Findings) -> Table | None:
    """Return the violations of dialogs by kind, the concurrent reading first; None where there are none."""
    if not findings.violation_counts:
        return None
    rows = tuple(
        (
            item.message or UNDECODED,
            item.kind,
            item.reading,
            item.protocol,
            *map(count_text, (item.conversations, item.violations)),
        )
        for item in sorted(findings.violation_counts, key=lambda item: item.reading)
    )
    note = "In the strict reading nobody speaks out of turn; peers that do not wait for each other keep the concurrent one."
    head = ("Message", "Kind", "Reading", "Protocol", "Conversations", "Violations")
    return Table("Violations of the dialogs", note, 4, head, rows)


def _topic_text(item: Topic) -> str:
    """The topic; tasks of jobs after their service, which may have tasks of the same name as another."""
    if item.kind == "job" and item.service and item.topic:
        return f"{item.service}: {item.topic}"
    return item.topic or item.service or WORDS.get(item.kind, item.kind)


def _took(micros: float | None) -> str:
    return "" if micros is None else micros_text(micros)
