"""Report of ``specwire check --coverage``: statements that the protocol does not account for."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from specwire.generated.errors import CodecError
from specwire.runtime.cli.decode_message import plain
from specwire.runtime.cli.packages import use_packages
from specwire.runtime.packages import load_package
from specwire.runtime.pcap.choosing import Chooser
from specwire.runtime.quantities import show_count

if TYPE_CHECKING:
    from specwire.generator.documents.coverage import Coverage, Decoded, DecodedExample
    from specwire.generator.pipeline import Compilation

WIDTH = 100


def cover(document: Path, folder: Path, compiled: Compilation) -> Coverage:
    """Compare the protocol in a folder with its document.

    Raises:
        SpecError: the document is not a text.
        OSError: the document cannot be read.
    """
    from specwire.generator.documents.coverage import Decoded, check_coverage

    def decode(frames: Sequence[bytes]) -> Decoded:
        use_packages(None, folder.parent, [folder.name])
        reading = Chooser([load_package(folder.name)]).decode(frames)
        if reading.error is not None:
            name = reading.error.message_name if isinstance(reading.error, CodecError) else None
            return Decoded(name or "", {}, str(reading.error))
        return Decoded(reading.message.NAME, plain(reading.message.to_dict()))

    return check_coverage(document, folder, compiled, decode)


def write_report(report: Coverage) -> str:
    """Return the report as text: open sentences by section, rules, examples and stale entries."""
    return "\n".join(_lines(report)) + "\n"


def _lines(report: Coverage) -> Iterator[str]:
    counted = [f"{number} by {reason}" for reason, number in report.accounted.items()]
    yield f"{report.document}: {show_count(report.sentences, 'sentence')} about the protocol"
    yield f"accounted for: {', '.join(counted) or 'none'}"
    yield f"not accounted for: {len(report.open)}"
    for section, sentences in groupby(report.open, key=lambda sentence: sentence.section):
        yield from ("", section or "(before the first heading)")
        for sentence in sentences:
            yield from _wrapped(f"line {sentence.line} [{', '.join(sentence.words)}]: {sentence.text}")
            if sentence.note:
                yield from _wrapped(f"  differs: {sentence.note}")
    if report.rules:
        yield from ("", "Rules that differ from the document")
    for line, change in report.rules:
        yield f"  line {line}:" if line else "  not in the document:"
        for now, definition in (("grammar", change.was), ("document", change.now)):
            yield from _wrapped(
                f"  {now}: {f'{change.rule} = {definition}' if definition else 'no such rule'}"
            )
    if report.unread:
        yield from ("", f"The rules of the document cannot be compared: {report.unread}")
    if report.examples:
        yield from ("", "Examples")
    for row in report.examples:
        yield from _wrapped(_example(row))
    if report.stale:
        yield from ("", "Entries of [[coverage]] that fit nothing in the document")
    for entry in report.stale:
        yield from _wrapped(f"{entry.section}: {entry.text}".strip(": "))


def _example(row: DecodedExample) -> str:
    place = f"line {row.example.line}: "
    if row.decoded.error:
        accepted = " (accounted for by [[coverage]])" if row.accepted else ""
        octets = " | ".join(frame.hex(" ") for frame in row.frames)
        return f"{place}{row.decoded.error}{accepted}; octets {octets}"
    fields = ", ".join(f"{name} = {value}" for name, value in row.decoded.fields.items())
    return f"{place}{row.decoded.message} {fields}".rstrip()


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False)


def as_json(report: Coverage) -> dict[str, Any]:
    """Return the report for programs; octets are hexadecimal, one string for each frame."""
    return {
        "document": report.document,
        "sentences": report.sentences,
        "accounted": report.accounted,
        "open": [asdict(sentence) for sentence in report.open],
        "rules": [{"line": line, **asdict(change)} for line, change in report.rules],
        "unread": report.unread or None,
        "examples": [
            {
                "line": row.example.line,
                "frames": [frame.hex() for frame in row.frames],
                "message": row.decoded.message or None,
                "fields": row.decoded.fields,
                "error": row.decoded.error or None,
                "accepted": row.accepted,
            }
            for row in report.examples
        ],
        "stale": [{"text": entry.text, "section": entry.section, "why": entry.why} for entry in report.stale],
        "complete": report.is_complete,
    }
