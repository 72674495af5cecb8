"""Settings that several servers share, alone and in groups, and checks of their values.

A check raises ValueError for a value that the server would refuse. It imports what it needs when it
is called: a command that only shows its help must start fast.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec

from specwire.runtime.kernel.settings import Setting


def check_listening(endpoint: str) -> None:
    """Raise ValueError if nothing can listen on `endpoint`."""
    _check_endpoint(endpoint, listening=True)


def check_connecting(endpoint: str) -> None:
    """Raise ValueError if nothing can connect to `endpoint`."""
    _check_endpoint(endpoint, listening=False)


def _check_endpoint(endpoint: str, *, listening: bool) -> None:
    from specwire.runtime.transport.endpoint import fault_in_endpoint

    if fault := fault_in_endpoint(endpoint, listening=listening):
        raise ValueError(f"{endpoint!r} {fault}")


def check_folder(path: Path) -> None:
    """Raise ValueError if `path` exists and is not a folder."""
    if path.exists() and not path.is_dir():
        raise ValueError(f"{path} is not a folder")


def check_file(path: Path) -> None:
    """Raise ValueError if `path` is not a file."""
    if not path.is_file():
        raise ValueError(f"{path} is not a file")


def check_secret_key(file: Path) -> None:
    """Raise ValueError if `file` holds no secret key of CURVE."""
    from specwire.runtime.transport.keys import KeyFileError, load_keys

    try:
        load_keys(file)
    except KeyFileError as error:
        raise ValueError(str(error)) from None


def check_age(text: str) -> None:
    """Raise ValueError if `text` is not an age such as ``7d``."""
    from specwire.runtime.capture.amounts import parse_age

    parse_age(text)


def check_size(text: str) -> None:
    """Raise ValueError if `text` is not a size such as ``20G``."""
    from specwire.runtime.capture.amounts import parse_size

    parse_size(text)


def check_payload(text: str) -> None:
    """Raise ValueError if `text` is not a policy for payloads."""
    from specwire.runtime.capture.policy import parse_payload

    parse_payload(text)


def check_metrics_address(text: str) -> None:
    """Raise ValueError if `text` is not ``[HOST:]PORT``."""
    from specwire.runtime.observe.place import read_place

    read_place(text, anywhere=True)


class CaptureSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Where messages are recorded, and how much of them is kept."""

    folder: Annotated[
        Path | None,
        Setting(
            help="Write every message to capture segments in this folder.",
            value="FOLDER",
            main=True,
            writes=True,
            check=check_folder,
        ),
    ] = None
    keep: Annotated[
        str | None,
        Setting(
            help="Delete segments that are older than this, such as 12h or 7d.",
            value="AGE",
            rare=True,
            check=check_age,
        ),
    ] = None
    max: Annotated[
        str | None,
        Setting(
            help="Delete the oldest segments when all together are larger than this, such as 500M or 20G.",
            value="SIZE",
            rare=True,
            check=check_size,
        ),
    ] = None
    payload: Annotated[
        str,
        Setting(
            help="How to write payloads: keep, cut:OCTETS, hash or omit.",
            value="POLICY",
            rare=True,
            check=check_payload,
        ),
    ] = "keep"
    free: Annotated[
        str | None,
        Setting(
            help=(
                "Drop messages instead of leaving less of the disk free. Default: the smaller of "
                "256M and a twentieth of the disk."
            ),
            value="SIZE",
            rare=True,
            check=check_size,
        ),
    ] = None


class MetricsSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Where a server shows its live page and its metrics."""

    address: Annotated[
        str | None,
        Setting(
            help=(
                "Serve a live page, and metrics for Prometheus at /metrics, over HTTP at this port "
                "of this machine."
            ),
            value="[HOST:]PORT",
            main=True,
            check=check_metrics_address,
        ),
    ] = None
    anywhere: Annotated[
        bool,
        Setting(
            help="Allow a metrics address that other machines can reach. Nothing is encrypted.", rare=True
        ),
    ] = False
    password_file: Annotated[
        Path | None,
        Setting(
            help="Ask for the password in this file before showing the page and the metrics.",
            value="FILE",
            rare=True,
            check=check_file,
        ),
    ] = None


LOG_FORMAT = Setting(help="Format of the log: lines for people, or one JSON object per line.")

FIRST_MESSAGE_BOUND = Setting(
    help=(
        "Disconnect a peer whose first message is larger. Later messages may be as large as the "
        "protocol allows."
    ),
    value="OCTETS",
    rare=True,
)
UNFINISHED_BOUND = Setting(
    help=(
        "Bound of the unfinished messages of all connections together. Above it, the peer that sent "
        "the most is disconnected."
    ),
    value="OCTETS",
    rare=True,
)
