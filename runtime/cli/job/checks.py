"""Checks at the end of a job: the counts of the peers must equal the counts in the tables.

Both sides are independent. Files are compared by digests of the folders. The peers count while they
run. The tables are read back with pyarrow, after Spark has decoded the capture.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from specwire.runtime.cli.job import flux_part, ticker_part
from specwire.runtime.cli.job.workspace import digest_folder

if TYPE_CHECKING:
    from specwire.runtime.cli.job.filemq_part import FilemqResult
    from specwire.runtime.cli.job.flux_part import FluxResult
    from specwire.runtime.cli.job.norfab_part import NorfabResult
    from specwire.runtime.cli.job.taps import Recorded
    from specwire.runtime.cli.job.ticker_part import TickerResult
    from specwire.runtime.spark.pipeline.summary import Summary

SHOWN_NAMES = 3


def compare_files(published: Path, inboxes: Mapping[str, Path]) -> Iterator[str]:
    """Yield a sentence for each inbox whose files are not exactly the published ones."""
    expected = digest_folder(published)
    for name, inbox in inboxes.items():
        found = digest_folder(inbox)
        wrong = [file for file in expected.keys() | found.keys() if expected.get(file) != found.get(file)]
        if wrong:
            shown = ", ".join(sorted(wrong)[:SHOWN_NAMES])
            yield f"{name}: {len(wrong)} of {len(expected)} files are missing, wrong or too many: {shown}"


def compare_taps(recorded: tuple[Recorded, ...], summary: Summary) -> Iterator[str]:
    """Yield a sentence for each tap with dropped messages, or with another count in the tables."""
    decoded = {tap.tap: tap for tap in summary.taps}
    for tap in recorded:
        if tap.dropped:
            yield f"the tap {tap.tap} dropped {tap.dropped} messages"
        found = decoded.get(tap.tap)
        messages = 0 if found is None else found.messages
        if messages != tap.recorded:
            yield f"the tap {tap.tap} recorded {tap.recorded} messages, and the tables hold {messages}"
    if summary.undecoded:
        yield f"{summary.undecoded} messages did not decode"


def check_filemq(result: FilemqResult, recorded: tuple[Recorded, ...], summary: Summary) -> Iterator[str]:
    """Yield a sentence for each difference between the FILEMQ peers' counters and the tables."""
    yield from (f"a FILEMQ peer refused {refusal}" for refusal in result.refusals)
    moved = sum(peer.messages for peer in result.peers)
    taken = sum(tap.recorded for tap in recorded if tap.protocol == "filemq")
    if moved != taken:
        yield f"the FILEMQ peers moved {moved} messages, and their taps recorded {taken}"
    content = sum(peer.content_octets for peer in result.peers)
    decoded = sum(found.octets for found in summary.transfers)
    if decoded != content:
        yield f"the FILEMQ peers moved {content} octets of content, and the decoded chunks hold {decoded}"


def check_flux(result: FluxResult, tables: Path) -> Iterator[str]:
    """Yield a sentence for each difference between the Flux clients' counts and `requests`."""
    yield from result.faults
    requests = _rows(tables / "answers" / "requests", "tap", "topic", "outcome")
    # Every call crosses the network once, so the tap of rank 0 sees it once.
    outcomes = [
        row["outcome"]
        for row in requests
        if row["tap"].startswith("flux-broker-0-") and row["topic"] in (flux_part.SQUARE, flux_part.ROOT)
    ]
    for outcome, counted in (("answered", result.answered), ("error", result.failed)):
        found = outcomes.count(outcome)
        if found != counted:
            yield f"{counted} Flux calls ended as {outcome}, and the table requests holds {found}"
    if result.received != result.published * (flux_part.SIZE - 1):
        yield f"{result.published} Flux events were published, and {result.received} received"


def check_norfab(result: NorfabResult, tables: Path) -> Iterator[str]:
    """Yield a sentence for each difference between the NORFAB jobs and the table `jobs`."""
    yield from result.faults
    outcomes = [row["outcome"] for row in _rows(tables / "answers" / "jobs", "outcome")]
    for outcome, counted in (("done", result.done), ("failed", result.failed)):
        found = outcomes.count(outcome)
        if found != counted:
            yield f"{counted} NORFAB jobs ended as {outcome}, and the table jobs holds {found}"


def check_ticker(result: TickerResult, tables: Path) -> Iterator[str]:
    """Yield a sentence for each difference between the received quotes and the table `Quote`."""
    yield from result.faults
    quotes = _rows(tables / "typed" / ticker_part.NAME / "Quote", "seq", "symbol", "price")
    if len(quotes) != result.quotes:
        yield f"{result.quotes} quotes were received, and the table Quote holds {len(quotes)}"
    last = {row["symbol"]: int(row["price"]) for row in sorted(quotes, key=lambda row: row["seq"])}
    if last != result.last_prices:
        yield f"the last prices were {result.last_prices}, and in the table Quote they are {last}"


def _rows(table: Path, *columns: str) -> list[dict[str, Any]]:
    """Return some columns of a table's rows; none if the table does not exist."""
    from pyarrow import dataset

    if not table.is_dir():
        return []
    found: list[dict[str, Any]] = (
        dataset.dataset(table, partitioning="hive").to_table(list(columns)).to_pylist()
    )
    return found
