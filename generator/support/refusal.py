"""Explanation of a failed decode: the slow path that finds the first fault.

`explain_decode` walks the frames with the protocol's layout and returns the first fault: message,
field with list index, frame, octet. `check_letter` does the same walk for ``strict``, which also
checks the character classes of the grammar and the requirements of the prose. Neither is fast.
Neither allocates memory by a number that the peer sent.
"""

from __future__ import annotations

from collections.abc import Sequence

from specwire.generated.errors import DecodeError
from specwire.generated.layout import ProtocolLayout
from specwire.generated.octets import as_frames
from specwire.generated.selection import find_message
from specwire.generated.walk import Walk


def explain_decode(
    layout: ProtocolLayout, frames: Sequence[bytes], strict: bool = False, sender: str | None = None
) -> DecodeError:
    """Return the error that describes the first fault of `frames`; `sender` is their alleged role."""
    try:
        check_letter(layout, frames, strict=strict, sender=sender)
    except DecodeError as error:
        return error
    # Tests prove that both paths agree; this error is for the case that they do not.
    return DecodeError(
        protocol=layout.protocol, message_name=None, field=None, frame=None, offset=None, kind="frames",
        expected="frames that both readings of the grammar accept", found="a disagreement between them; please report it",
        rule=layout.edition,
    )  # fmt: skip


def check_letter(
    layout: ProtocolLayout, frames: Sequence[bytes], *, strict: bool = True, sender: str | None = None
) -> None:
    """Walk over `frames`; with `strict`, check them to the letter of the specification.

    Raises:
        DecodeError: the first fault.
    """
    octets = as_frames(frames)
    Walk(layout, find_message(layout, octets, sender), octets, strict).message()
