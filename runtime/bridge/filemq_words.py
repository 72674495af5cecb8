"""FILEMQ as published and as the C implementation speaks it: commands out of messages, and messages of commands.

The messages are nearly the same (`specwire.runtime.filemq.codec`), the habits are not, so a bridge has to remember
something of each connection: `filemq_old_server` where a server of the C kind listens, `filemq_old_client` where such a
client connects.
"""

from __future__ import annotations

from collections.abc import Sequence

from specwire.generated import filemq
from specwire.generated.errors import DecodeError, EncodeError
from specwire.runtime.bridge.translation import Send, Unsaid, UnsayableError
from specwire.runtime.filemq.codec import FILEMQ, LIBFILEMQ, Command, Dialect

NAMES = (FILEMQ.name, LIBFILEMQ.name)


def read_commands(dialect: Dialect, frames: Sequence[bytes]) -> Sequence[Command]:
    """Return what a message says, in the commands of FILEMQ v2; raises UnsayableError."""
    try:
        return dialect.decode(frames)
    except DecodeError as error:
        raise UnsayableError(f"no message of {dialect.name} ({error.field}: {error.kind})") from None


def write_command(dialect: Dialect, command: Command, *, to_opener: bool) -> Send | Unsaid:
    """Return the message for a command, or why there is none, without the names in it.

    WAT, which the C implementation does not have, becomes RTFM: both end the peering.
    """
    if dialect is LIBFILEMQ and isinstance(command, filemq.Wat):
        command = filemq.Rtfm(reason=command.reason)
    try:
        return Send(to_opener, dialect.encode(command))
    except EncodeError as error:
        return Unsaid(f"{dialect.name} has no word for it ({command.NAME}, {error.field}: {error.kind})")
