"""The wire format that a peer speaks, behind one interface.

The engines think in the commands of FILEMQ v2 as published (the package `specwire.generated.filemq`). A
`Dialect` turns frames into those commands and back, and says which habits the other side expects. Another
wire format of the same protocol, such as the one that the C implementation publishes, is another `Dialect`:
it converts its own messages to these and watches its own dialog; the engines do not change.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, Protocol

from specwire.generated import filemq
from specwire.generated.errors import DecodeError, Violation
from specwire.runtime.filemq.names import cut_reason

Command = filemq.AnyMessage

Role = Literal["C", "S"]
ErrorCommand = filemq.Srsly | filemq.Rtfm | filemq.Wat


class OutOfTurnError(Exception):
    """An engine was about to send what the dialog does not allow there: a fault of ours, never of the peer."""


class Dialog(Protocol):
    """Watches one peering for commands that come where they must not."""

    def receive(self, command: Command, /) -> Violation | None:
        """Take the peer's next command; return what is wrong with it, None where nothing is."""

    def send(self, command: Command, /) -> Violation | None:
        """Take our own next command; one with a violation is not to be sent."""


class Dialect(Protocol):
    """What the engines need to know of a wire format."""

    @property
    def name(self) -> str:
        """Name of the generated package."""

    @property
    def edition(self) -> str:
        """Edition of the specification, as captures state it."""

    @property
    def timers(self) -> Mapping[str, float]:
        """Seconds: ``heartbeat``, ``expiry``, ``reconnect``."""

    def decode(self, frames: Sequence[bytes]) -> Command:
        """Return the command in `frames`; raises DecodeError."""

    def encode(self, command: Command) -> list[bytes]:
        """Return the frames of `command`; raises EncodeError."""

    def answer(self, role: Role, error: DecodeError) -> ErrorCommand | None:
        """Return what `role` answers to a message that gave `error`, None for silence."""

    def open_dialog(self, role: Role) -> Dialog:
        """Return a watch over a new peering, kept by `role`."""


class Published:
    """FILEMQ v2 as the specification publishes it."""

    name = "filemq"
    edition = filemq.EDITION
    timers: Mapping[str, float] = filemq.machine.TIMERS

    def decode(self, frames: Sequence[bytes]) -> Command:
        """See `Dialect.decode`."""
        return filemq.decode(frames)

    def encode(self, command: Command) -> list[bytes]:
        """See `Dialect.encode`."""
        return command.encode()

    def answer(self, role: Role, error: DecodeError) -> ErrorCommand | None:
        """See `Dialect.answer`."""
        reply = filemq.answer(role, error)
        if reply is None or not issubclass(reply, ErrorCommand):
            return None
        return reply(reason=cut_reason(str(error)))

    def open_dialog(self, role: Role) -> Dialog:
        """See `Dialect.open_dialog`."""
        return filemq.machine.Session(role=role, reading="concurrent")


FILEMQ: Dialect = Published()

DIALECTS: Mapping[str, Dialect] = {FILEMQ.name: FILEMQ}


def find_dialect(name: str) -> Dialect:
    """Return the dialect of the generated package `name`; raises ValueError for one that is not spoken."""
    try:
        return DIALECTS[name]
    except KeyError:
        spoken = ", ".join(sorted(DIALECTS))
        raise ValueError(f"no FILEMQ peer speaks {name!r}; known: {spoken}") from None
