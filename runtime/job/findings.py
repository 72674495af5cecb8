"""What must hold at the end of the job, checked from sides that do not know of each other.

The files are compared by digests taken afresh from the folders. The decoded tables are compared with what
the peers counted while they ran: every message of every peer must be in the capture and must decode, and
the file content in the decoded chunks must be what the peers say they moved.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from specwire.runtime.job.files import digest_folder
from specwire.runtime.job.transfer import Transfer

if TYPE_CHECKING:
    from specwire.runtime.spark.pipeline.summary import Summary

SHOWN_NAMES = 3


def compare_files(published: Path, inboxes: Mapping[str, Path]) -> Iterator[str]:
    """Yield a sentence for each inbox that does not hold exactly the published files."""
    expected = digest_folder(published)
    for name, inbox in inboxes.items():
        found = digest_folder(inbox)
        wrong = [file for file in expected.keys() | found.keys() if expected.get(file) != found.get(file)]
        if wrong:
            shown = ", ".join(sorted(wrong)[:SHOWN_NAMES])
            yield f"{name}: {len(wrong)} of {len(expected)} files are missing, wrong or too many: {shown}"


def compare_counts(transfer: Transfer, summary: Summary) -> Iterator[str]:
    """Yield a sentence for each difference between what the peers did and what was decoded."""
    for peer in transfer.peers:
        yield from (f"{peer.name} refused {refusal}" for refusal in peer.refusals)
        moved = peer.messages_in + peer.messages_out
        if peer.dropped or peer.recorded != moved:
            yield f"{peer.name} moved {moved} messages, its tap recorded {peer.recorded} and dropped {peer.dropped}"
    if summary.undecoded:
        yield f"{summary.undecoded} messages did not decode"
    recorded = sum(peer.recorded for peer in transfer.peers)
    if summary.messages != recorded:
        yield f"{recorded} messages were recorded and {summary.messages} decoded"
    octets = sum(peer.octets for peer in transfer.peers)
    if summary.octets != octets:
        yield f"the peers moved {octets} octets and the capture holds {summary.octets}"
    moved = sum(peer.content_octets for peer in transfer.peers)
    decoded = sum(found.octets for found in summary.transfers)
    if decoded != moved:
        yield f"the peers moved {moved} octets of file content and the decoded chunks hold {decoded}"
