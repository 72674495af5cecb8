"""UDP beacons of RFC 36, "Node Discovery and Presence".

A beacon is 22 octets: "ZRE", the version 1, the UUID of the node, and the port of its mailbox. It
is broadcast at intervals to the network of one local address. The port 0 means that the node
leaves. A beacon has no address: the mailbox is where the datagram comes from.

Surprises:

- There are two sockets. One is bound to the broadcast address, and hears only what is sent to this
  network. The other is bound to the local address, so that beacons come from that of the mailbox.
- Broadcasts go to the address of the network, such as 192.168.1.255: zeromq-pyre listens there.
- Beacons are not authenticated. The rules of the peer bound what they can cause.
"""

from __future__ import annotations

import asyncio
import fcntl
import socket
import struct
from collections.abc import Callable
from ipaddress import IPv4Address, IPv4Interface
from typing import Any

from specwire.runtime.kernel.log import LogEvent
from specwire.runtime.kernel.service import Service
from specwire.runtime.transport.errors import TransportError
from specwire.runtime.zre.events import NotAnnounced
from specwire.runtime.zre.state import BeaconReceived

HEADER = b"ZRE\x01"
BEACON_OCTETS = 22
INTERVAL_S = 1.0
GET_ADDRESS, GET_NETMASK = 0x8915, 0x891B
"""Requests of netdevice(7): SIOCGIFADDR and SIOCGIFNETMASK of Linux."""


def encode_beacon(uuid: bytes, port: int) -> bytes:
    """Return the octets of a beacon."""
    return HEADER + uuid + port.to_bytes(2)


def decode_beacon(octets: bytes) -> tuple[bytes, int]:
    """Return the UUID and the port; raises ValueError for other octets."""
    if len(octets) != BEACON_OCTETS:
        raise ValueError(f"a beacon has {BEACON_OCTETS} octets, not {len(octets)}")
    if not octets.startswith(HEADER):
        raise ValueError(f"a beacon begins with {HEADER!r}, not {octets[:4]!r}")
    return octets[4:20], int.from_bytes(octets[20:])


class Beacons(Service, asyncio.DatagramProtocol):
    """Sends the beacons of a node, and passes on those of others.

    Args:
        uuid: of this node.
        mailbox: address and port of its mailbox.
        beacon_port: UDP port to which every node sends.
        on_beacon: called with each beacon, those of this node included.
        on_event: called with each event for the log.
        interval_s: time between two beacons.
    """

    def __init__(
        self,
        uuid: bytes,
        mailbox: tuple[str, int],
        beacon_port: int,
        *,
        on_beacon: Callable[[BeaconReceived], None],
        on_event: Callable[[LogEvent], None],
        interval_s: float = INTERVAL_S,
    ) -> None:
        self._uuid, (self._host, self._port), self._beacon_port = uuid, mailbox, beacon_port
        self._on_beacon, self._on_event, self._interval_s = on_beacon, on_event, interval_s

    async def start(self) -> None:
        """Listen, and begin to announce the mailbox.

        Raises:
            TransportError: the address is not local, has no broadcast, or the port is taken.
        """
        self._network = find_network(self._host).network
        self._target = (str(self._network.broadcast_address), self._beacon_port)
        loop = asyncio.get_running_loop()
        try:
            self._listening, _ = await loop.create_datagram_endpoint(
                lambda: self, sock=bound_socket(self._target)
            )
            self._sender = bound_socket((self._host, 0))
        except OSError as error:
            where = f"{self._target[0]}:{self._beacon_port}"
            raise TransportError(f"cannot listen for beacons on {where}: {error.strerror}") from None
        self._announcing = asyncio.create_task(self._announce())

    async def stop(self) -> None:
        """Announce that the node leaves."""
        self._announcing.cancel()
        await asyncio.wait([self._announcing])
        self._send(0)
        self._listening.close()
        self._sender.close()

    def datagram_received(self, data: bytes, addr: tuple[str | Any, int]) -> None:
        """Pass on a beacon from this network. RFC 36: discard others silently."""
        try:
            uuid, port = decode_beacon(data)
        except ValueError:
            return
        if IPv4Address(addr[0]) in self._network:
            self._on_beacon(BeaconReceived(uuid, addr[0], port))

    async def _announce(self) -> None:
        fault = ""
        while True:
            before, fault = fault, self._send(self._port)
            if fault and not before:
                self._on_event(NotAnnounced(self._target[0], fault))
            await asyncio.sleep(self._interval_s)

    def _send(self, port: int) -> str:
        """Send a beacon; return why it cannot be sent, "" where it is."""
        try:
            self._sender.sendto(encode_beacon(self._uuid, port), self._target)
        except OSError as error:
            return error.strerror or type(error).__name__
        return ""


def bound_socket(address: tuple[str, int]) -> socket.socket:
    """Return a UDP socket for broadcasts that shares its port with other nodes of this machine."""
    made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    made.setblocking(False)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind(address)
    except OSError:
        made.close()
        raise
    return made


def find_network(address: str) -> IPv4Interface:
    """Return a local address with its network.

    Raises:
        TransportError: no interface has the address, or its network has no broadcast.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        for _, name in socket.if_nameindex():
            # The request is about this address of the interface, if it has it.
            request = struct.pack("16sHH4s16x", name.encode(), socket.AF_INET, 0, socket.inet_aton(address))
            try:
                found, mask = (
                    socket.inet_ntoa(fcntl.ioctl(asking, about, request)[20:24])
                    for about in (GET_ADDRESS, GET_NETMASK)
                )
            except OSError:  # an interface without an IPv4 address
                continue
            if found == address:
                interface = IPv4Interface(f"{address}/{mask}")
                if interface.network.prefixlen > 30:
                    raise TransportError(f"{interface} has no broadcast address for beacons")
                return interface
    raise TransportError(f"no interface of this machine has the address {address}: see `ip -4 address`")
