"""Captures of servers: the tap that settings describe, and the options `--capture-…` of commands with parameters."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

from specwire.runtime.cli.config_option import option_from
from specwire.runtime.kernel.settings_groups import CaptureSettings

if TYPE_CHECKING:
    from specwire.runtime.capture import Limits, Tap

CaptureKeepOption = Annotated[str | None, option_from(CaptureSettings, "keep", "--capture-keep")]
CaptureMaxOption = Annotated[str | None, option_from(CaptureSettings, "max", "--capture-max")]
CapturePayloadOption = Annotated[str, option_from(CaptureSettings, "payload", "--capture-payload")]
CaptureFreeOption = Annotated[str | None, option_from(CaptureSettings, "free", "--capture-free")]


def read_capture_limits(
    keep: str | None = None, most: str | None = None, payload: str = "keep", free: str | None = None
) -> Limits:
    """Return the limits for `Tap.open`; raises ValueError that names the option."""
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


@contextmanager
def open_capture(capture: CaptureSettings, protocol: str, edition: str, name: str) -> Iterator[Tap | None]:
    """Open the tap `name` of a capture, None without a folder; raises CaptureError."""
    if capture.folder is None:
        yield None
        return
    from specwire.runtime.capture import Tap

    limits = read_capture_limits(capture.keep, capture.max, capture.payload, capture.free)
    with Tap.open(capture.folder, protocol=protocol, name=name, edition=edition, limits=limits) as tap:
        yield tap
