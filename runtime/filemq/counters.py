"""What a peer has done so far, in numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from specwire.runtime.filemq.events import Event, FileDeleted, FileReceived, FileSent, PeerOpened, Refused


@dataclass(slots=True)
class Counters:
    """Counts since the start; they only grow.

    `octets_*` are those of all frames, `content_octets` those of file content alone, in either direction.
    """

    messages_in: int = 0
    messages_out: int = 0
    octets_in: int = 0
    octets_out: int = 0
    chunks: int = 0
    content_octets: int = 0
    files: int = 0
    deletions: int = 0
    refusals: int = 0
    peerings: int = 0

    def count_in(self, frames: Sequence[bytes], content_octets: int) -> None:
        """Count a message that came in, with so much file content in it."""
        self.messages_in += 1
        self.octets_in += sum(map(len, frames))
        self._count_content(content_octets)

    def count_out(self, frames: Sequence[bytes], content_octets: int) -> None:
        """Count a message that was handed to the network, with so much file content in it."""
        self.messages_out += 1
        self.octets_out += sum(map(len, frames))
        self._count_content(content_octets)

    def count_event(self, event: Event) -> None:
        """Count what an event stands for."""
        match event:
            case FileReceived() | FileSent():
                self.files += 1
            case FileDeleted():
                self.deletions += 1
            case Refused():
                self.refusals += 1
            case PeerOpened():
                self.peerings += 1

    def to_dict(self) -> dict[str, int]:
        """Return the counts by name."""
        return asdict(self)

    def _count_content(self, octets: int) -> None:
        if octets:  # an empty chunk ends a file
            self.chunks += 1
            self.content_octets += octets
