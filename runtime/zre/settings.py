"""Settings of a ZRE peer, and what makes them unusable."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import IPv4Address
from typing import Annotated

import msgspec

from specwire.runtime.kernel.settings import Setting
from specwire.runtime.kernel.settings_groups import check_connecting, check_listening
from specwire.runtime.transport.endpoint import fault_in_endpoint, resolve_endpoint

LONGEST_TEXT_OCTETS = 255
Text = Annotated[str, msgspec.Meta(max_length=LONGEST_TEXT_OCTETS, description="Text of at most 255 octets.")]
Seconds = Annotated[float, msgspec.Meta(gt=0, le=86_400, description="Time in seconds.")]


class ZreSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of a ZRE peer."""

    groups: Annotated[
        tuple[Text, ...], Setting(help="Groups to join.", value="GROUP", argument=True, reload=True)
    ] = ()
    endpoint: Annotated[
        tuple[str, ...],
        Setting(
            help="Mailbox of another peer; repeatable.",
            value="ENDPOINT",
            reload=True,
            check=check_connecting,
        ),
    ] = ()
    bind: Annotated[
        str,
        Setting(
            help="Mailbox of this peer, with the address that others connect to.",
            value="ENDPOINT",
            check=check_listening,
        ),
    ] = "tcp://127.0.0.1:*"
    beacon: Annotated[
        str | None,
        Setting(
            help="Find peers by UDP beacons in the network of this local IPv4 address, that of the mailbox.",
            value="ADDRESS",
        ),
    ] = None
    beacon_port: Annotated[
        int, msgspec.Meta(ge=1, le=65_535), Setting(help="UDP port of the beacons.", rare=True)
    ] = 5670
    name: Annotated[Text | None, Setting(help="Public name; default: the first digits of the UUID.")] = None
    headers: Annotated[
        Mapping[str, str],
        Setting(help="Properties sent to every peer, such as {role = 'gateway'}.", rare=True),
    ] = {}
    evasive_after: Annotated[
        Seconds,
        Setting(help="Ping a peer that is silent for so long.", value="SECONDS", rare=True, reload=True),
    ] = 5.0
    expired_after: Annotated[
        Seconds,
        Setting(
            help="Disconnect a peer that is silent for so long.", value="SECONDS", rare=True, reload=True
        ),
    ] = 30.0
    max_peers: Annotated[int, msgspec.Meta(ge=1), Setting(help="Most peers at a time.", rare=True)] = 1000
    frame_octets: Annotated[
        int, msgspec.Meta(ge=1024), Setting(help="Largest frame of a message.", value="OCTETS", rare=True)
    ] = 1 << 20

    def __post_init__(self) -> None:
        if self.beacon is None:
            return
        try:
            IPv4Address(self.beacon)
        except ValueError:
            raise ValueError(f"{self.beacon!r} is no IPv4 address, such as 192.168.1.17") from None
        if not self.bind.startswith(f"tcp://{self.beacon}:"):
            raise ValueError(
                f"other peers will connect to {self.beacon}, where {self.bind} does not listen: "
                f"set bind to tcp://{self.beacon}:*"
            )


def check_settings(settings: ZreSettings) -> None:
    """Raise ValueError for settings with which a peer cannot work.

    These are an endpoint that is none, a `bind` that other peers cannot connect to, and a text of
    more octets than a message has room for.
    """
    if fault := fault_in_endpoint(settings.bind, listening=True):
        raise ValueError(f"{settings.bind!r} {fault}")
    for endpoint in settings.endpoint:
        if fault := fault_in_mailbox(endpoint):
            raise ValueError(f"{endpoint!r} {fault}")
    for text in (settings.name or "", *settings.groups, *settings.headers):
        if len(text.encode()) > LONGEST_TEXT_OCTETS:
            raise ValueError(
                f"{text!r} is too long: the name, a group and the name of a header have at most "
                f"{LONGEST_TEXT_OCTETS} octets"
            )
    if settings.bind.startswith(("tcp://*", "tcp://0.0.0.0", "tcp://[::]")):
        raise ValueError(f"{settings.bind}: name the address to which other peers connect")


def fault_in_mailbox(endpoint: str) -> str | None:
    """Return why a peer cannot connect to an endpoint, None where it may try."""
    if ";" in endpoint:
        return "names a source address: write tcp://HOST:PORT"
    return fault_in_endpoint(endpoint, listening=False)


async def resolve_endpoints(settings: ZreSettings) -> ZreSettings:
    """Replace host names by addresses: a peer announces an address, and is recognized by it."""
    resolved = [await resolve_endpoint(one) for one in settings.endpoint]
    return msgspec.structs.replace(settings, endpoint=tuple(dict.fromkeys(resolved)))
