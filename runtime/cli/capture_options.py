"""Options of every server that writes captures: what is kept of them, and what they leave to the traffic."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from specwire.runtime.capture import Limits

CaptureKeepOption = Annotated[
    str | None,
    typer.Option(
        "--capture-keep",
        metavar="AGE",
        help="Delete segments that are older, such as 12h or 7d.",
        show_default=False,
    ),
]

CaptureMaxOption = Annotated[
    str | None,
    typer.Option(
        "--capture-max",
        metavar="SIZE",
        help="Delete the oldest segments when all are larger, such as 500M or 20G.",
        show_default=False,
    ),
]

CapturePayloadOption = Annotated[
    str,
    typer.Option(
        "--capture-payload",
        metavar="POLICY",
        help="What is written of payloads: keep, cut:OCTETS, hash or omit.",
    ),
]

CaptureFreeOption = Annotated[
    str | None,
    typer.Option(
        "--capture-free",
        metavar="SIZE",
        help="Rather drop messages than leave less of the disk free. By default 256M, or a twentieth of it.",
        show_default=False,
    ),
]


def read_capture_limits(
    keep: str | None = None, most: str | None = None, payload: str = "keep", free: str | None = None
) -> Limits:
    """Return what the four options ask for, as `Tap.open` takes it; ValueError that names the option."""
    from specwire.runtime.capture import Limits
    from specwire.runtime.capture.amounts import parse_age, parse_size
    from specwire.runtime.capture.policy import parse_payload
    from specwire.runtime.capture.retention import Retention

    option = "--capture-keep"
    try:
        keep_s = None if keep is None else parse_age(keep)
        option = "--capture-max"
        max_octets = None if most is None else parse_size(most)
        option = "--capture-payload"
        policy = parse_payload(payload)
        option = "--capture-free"
        free_octets = None if free is None else parse_size(free)
    except ValueError as error:
        raise ValueError(f"{option}: {error}") from None
    return Limits(payload=policy, retention=Retention(keep_s, max_octets), free_octets=free_octets)
