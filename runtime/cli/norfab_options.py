"""Options that the commands of NORFAB have in common, and what they mean."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from specwire.runtime.capture.limits import Limits
    from specwire.runtime.capture.recorder import Recorder
    from specwire.runtime.transport.security import CurveClient, Null

DEFAULT_ENDPOINT = "tcp://127.0.0.1:5555"
KEYS = "keys"
"""The folder with keys in the folder of a broker."""

FolderOption = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        help="Where a broker keeps its jobs and keys; by default specwire/norfab in your data folder.",
        show_default=False,
    ),
]

KeysOption = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        help="Folder with this peer's keys and broker.key; by default that of a broker of yours.",
        show_default=False,
    ),
]

UserOption = Annotated[
    str | None,
    typer.Option("--as", metavar="USER", help="Whose key of that folder is used.", show_default=False),
]

InsecureOption = Annotated[
    bool,
    typer.Option("--insecure", help="Do not encrypt, and prove nothing: for a broker that does neither."),
]

CaptureOption = Annotated[
    Path | None,
    typer.Option(help="Write every message to capture segments in this folder.", show_default=False),
]


def read_security(keys: Path | None, user: str, *, insecure: bool) -> CurveClient | Null:
    """Return how a worker or client proves itself.

    Args:
        keys: the folder with the keys; None is that of a broker of this user.
        user: whose key.
        insecure: prove nothing.

    Raises:
        KeyFileError: a key cannot be read; it says which, and what to do.
    """
    from specwire.runtime.norfab.security.keyring import Keyring, default_folder
    from specwire.runtime.transport.security import NULL

    if insecure:
        return NULL
    return Keyring(keys or default_folder(os.environ) / KEYS).peer(user)


@contextmanager
def open_tap(folder: Path | None, name: str, limits: Limits | None = None) -> Iterator[Recorder | None]:
    """Open a tap for a capture in `folder`, None where there is none; raises CaptureError or ValueError.

    The two dialects are protocols of their own to whoever reads captures, so each message goes to that of its dialect.
    """
    if folder is None:
        yield None
        return
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"--capture: {folder} is not a folder")
    from specwire.generated import norfab, norfab_ascii
    from specwire.runtime.capture import Tap

    octets = Tap.open(folder, protocol="norfab", name=f"{name}-octets", edition=norfab.EDITION, limits=limits)
    try:
        deployed = Tap.open(
            folder, protocol="norfab_ascii", name=name, edition=norfab_ascii.EDITION, limits=limits
        )
        try:
            yield _Split(octets, deployed)
        finally:
            deployed.close()
    finally:
        octets.close()


class _Split:
    """Gives each message to the tap of its dialect."""

    def __init__(self, octets: Recorder, deployed: Recorder) -> None:
        self._octets, self._deployed = octets, deployed
        self.taps = (deployed, octets)

    def record(self, *, sender: str, peer: str, conversation: str, frames: Sequence[bytes]) -> None:
        """Take one message."""
        from specwire.runtime.norfab.wire import COMMAND_FRAME, DEPLOYED_COMMAND_OCTETS

        deployed = len(frames) > COMMAND_FRAME and len(frames[COMMAND_FRAME]) == DEPLOYED_COMMAND_OCTETS
        tap = self._deployed if deployed else self._octets
        tap.record(sender=sender, peer=peer, conversation=conversation, frames=frames)
