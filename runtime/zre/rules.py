"""Rules of ZRE v2 (RFC 36), as stories of the kernel.

A node has one mailbox (ROUTER), and one connection (DEALER) to each peer. Everything comes by the
mailbox, and everything leaves by a connection. Messages on a connection are numbered from 1, the
HELLO; a gap makes the peer invalid.

Peers are found by endpoint: `keep_dialing` greets an endpoint until the peer there greets back, and
again when it has gone. A beacon of an unknown peer (`BeaconReceived`) names such an endpoint, which
is given up when its beacons stop. A HELLO from another peer is answered by a connection to its
endpoint.

Surprises:

- A peer counts from HELLO of *our* connection, so a new connection begins with HELLO and number 1.
  A second HELLO of a known peer means that it has started again.
- A connection has the routing id of its node, so the mailbox lets a new one replace an older one.
- Pyre (zeromq-pyre 0.3.4) counts modulo 65,535 instead of 65,536. Both are accepted.
"""

from __future__ import annotations

from typing import Any

from specwire.generated.zre import AnyMessage, Hello, Join, Leave, Ping, PingOk, Shout, Whisper
from specwire.runtime.kernel.effects import (
    TIMED_OUT,
    Cancel,
    Connect,
    DropPeer,
    Fork,
    Log,
    Now,
    Return,
    Steps,
    Stop,
    Story,
    Wait,
    Wake,
)
from specwire.runtime.kernel.events import (
    Called,
    Event,
    MessageMalformed,
    MessageReceived,
    Noticed,
    PeerDisconnected,
    PeerId,
    Reloaded,
    SendFailed,
    Started,
    Stopping,
)
from specwire.runtime.transport.backoff import ReconnectPolicy
from specwire.runtime.zre import events
from specwire.runtime.zre.settings import ZreSettings, fault_in_mailbox
from specwire.runtime.zre.state import (
    LAST_SEQUENCE,
    BeaconReceived,
    LocalNode,
    Remote,
    SetMembership,
    ShoutTo,
    WhisperTo,
    ZreError,
)

MAILBOX = "mailbox"
DIAL = "dial"
MAX_GROUPS = 1000
AGAIN_S = 1.0
"""A peer may greet again after this time. Each greeting opens a connection."""

MAX_STRANGERS = 100
"""Most endpoints at a time that are dialed because of beacons, and have not greeted back."""


def react(node: LocalNode, event: Event) -> Story:
    """Return the story of an event."""
    match event:
        case MessageReceived(peer=peer, message=message):
            yield from receive(node, peer, message)
        case MessageMalformed(peer=peer, error=error):
            yield Log(events.MessageIgnored(peer.routing_id[1:].hex(), str(error)))
        case PeerDisconnected(peer=connection, reason=reason):
            yield from lose(node, connection, reason)
        case SendFailed(peer=connection, reason=reason):  # its number is used: the next would be a gap
            yield DropPeer(connection)
            yield from lose(node, connection, reason)
        case Noticed(value=BeaconReceived() as beacon):
            yield from on_beacon(node, beacon)
        case Called(call=call, request=request):
            yield from answer(node, call, request)
        case Started(endpoints=endpoints):
            node.endpoint = endpoints[MAILBOX]
            node.name = node.name or node.settings.name or node.uuid.hex()[:6].upper()
            node.groups = dict.fromkeys(node.settings.groups)
            for endpoint in node.settings.endpoint:
                yield Fork(keep_dialing(node, endpoint), (DIAL, endpoint))
        case Reloaded(settings=settings):
            yield from reload(node, settings)
        case Stopping(reason=reason):
            yield Stop(reason)  # only beacons say goodbye; peers notice the lost connection


def greet(node: LocalNode, uuid: bytes, endpoint: str) -> Steps[Remote]:
    """Open a connection and send HELLO."""
    node.connections += 1
    remote = Remote(uuid, PeerId(f"peer-{node.connections}"), endpoint, (yield Now()))
    yield Connect(remote.connection, endpoint, b"\x01" + node.uuid)
    yield remote.send(
        Hello,
        endpoint=node.endpoint,
        groups=tuple(node.groups),
        status=node.status,
        name=node.name,
        headers=tuple(node.settings.headers.items()),
    )
    return remote


def keep_dialing(node: LocalNode, endpoint: str) -> Story:
    """Greet an endpoint until its peer greets back; again when this peer has gone."""
    policy = ReconnectPolicy()
    while node.wants(endpoint, (yield Now())):
        remote = next((one for one in node.peers.values() if one.endpoint == endpoint), None)
        until = None
        if remote is None:
            remote = node.dialing[endpoint] = yield from greet(node, b"", endpoint)
            until = remote.received_at + node.settings.expired_after
        reason = yield Wait(remote.connection, until)
        answered = node.dialing.pop(endpoint, None) is not remote
        if answered and reason is TIMED_OUT:
            reason = yield Wait(remote.connection)
        elif reason is TIMED_OUT:
            yield DropPeer(remote.connection)
            reason = f"no HELLO within {node.settings.expired_after:g} s"
        retry_at, text = policy.fail(reason, (yield Now()), answered=answered)
        if text and not answered:
            yield Log(events.NotReached(endpoint, text))
        yield Wait((DIAL, endpoint), retry_at)
    node.beacons.pop(endpoint, None)


def on_beacon(node: LocalNode, beacon: BeaconReceived) -> Story:
    """Dial an unknown peer, and disconnect one that leaves; RFC 36, "Node Discovery and Presence"."""
    if beacon.uuid == node.uuid:
        return
    remote = node.peers.get(beacon.uuid)
    if remote is None and beacon.port:
        yield from dial_stranger(node, f"tcp://{beacon.host}:{beacon.port}")
    elif remote is None or not remote.endpoint.startswith(f"tcp://{beacon.host}:"):
        return  # only its own host says that a peer lives or leaves
    elif beacon.port:
        yield from refresh(remote)
    else:
        yield from expel(node, remote, "left")


def dial_stranger(node: LocalNode, endpoint: str) -> Story:
    """Begin to dial the endpoint of a beacon, unless there are too many of them."""
    now = yield Now()
    if endpoint in node.beacons:
        node.beacons[endpoint] = now
        return
    if len(node.beacons) >= MAX_STRANGERS or len(node.peers) >= node.settings.max_peers:
        return  # its next beacon comes soon
    if endpoint in node.settings.endpoint or any(one.endpoint == endpoint for one in node.peers.values()):
        return
    yield Cancel((DIAL, endpoint))  # of a peer that was there before, and has just gone
    node.beacons[endpoint] = now
    yield Fork(keep_dialing(node, endpoint), (DIAL, endpoint))


def receive(node: LocalNode, peer: PeerId, message: AnyMessage) -> Story:
    """Handle a message; RFC 36, "ZRE Commands"."""
    if len(peer.routing_id) != 17 or peer.routing_id[0] != 1:
        yield Log(
            events.MessageIgnored(peer.routing_id.hex(), "its routing id is not the octet 1 and a UUID")
        )
        return
    if isinstance(message, Hello):
        yield from on_hello(node, peer.routing_id[1:], message)
        return
    remote = node.find(peer)
    if remote is None:
        return  # "silently ignore any commands that precede a HELLO command"
    expected = (remote.received + 1) & LAST_SEQUENCE
    if not remote.is_next(message.sequence):
        yield from expel(node, remote, f"sent message {message.sequence} instead of {expected}")
        return
    yield from refresh(remote)
    match message:
        case Whisper(content=content):
            yield Log(events.Whispered(remote.label, remote.name, content))
        case Shout(group=group, content=content) if group in node.groups:
            yield Log(events.Shouted(remote.label, remote.name, group, content))
        case Join(group=group) if group not in remote.groups:
            if len(remote.groups) >= MAX_GROUPS:
                yield from expel(node, remote, f"joined more than {MAX_GROUPS} groups")
                return
            remote.groups.add(group)
            yield Log(events.GroupJoined(remote.label, remote.name, group))
        case Leave(group=group) if group in remote.groups:
            remote.groups.remove(group)
            yield Log(events.GroupLeft(remote.label, remote.name, group))
        case Ping():
            yield remote.send(PingOk)


def refresh(remote: Remote) -> Story:
    """Note a sign of life."""
    remote.received_at = yield Now()
    if remote.evasive:
        remote.evasive = False
        yield Wake(("watch", remote.uuid))


def on_hello(node: LocalNode, uuid: bytes, hello: Hello) -> Story:
    """A peer greets: connect to it, unless it answers our own greeting."""
    now, known = (yield Now()), node.peers.get(uuid)
    fault = fault_in_hello(node, uuid, hello)
    fault = fault or fault_in_rate(node, uuid, now)
    if fault:
        yield Log(events.MessageIgnored(uuid.hex(), fault))
        return
    node.greeted[uuid] = now
    if known is not None:
        yield from expel(node, known, "started again")
    node.beacons.pop(hello.endpoint, None)
    remote = node.dialing.pop(hello.endpoint, None)
    if remote is None:
        remote = yield from greet(node, uuid, hello.endpoint)
    remote.uuid, remote.received_at = uuid, now
    remote.name, remote.headers = hello.name, dict(hello.headers)
    remote.groups = set(hello.groups)
    node.peers[uuid] = remote
    yield Log(events.PeerEntered(remote.label, remote.name, remote.endpoint, remote.headers))
    for group in hello.groups:
        yield Log(events.GroupJoined(remote.label, remote.name, group))
    yield Fork(watch(node, remote), remote.connection)


def fault_in_hello(node: LocalNode, uuid: bytes, hello: Hello) -> str:
    """Return why a HELLO is not accepted, "" where it is."""
    if uuid == node.uuid:
        return "it is this peer"
    if hello.sequence != 1:
        return f"HELLO has the number {hello.sequence} instead of 1"
    if fault := fault_in_mailbox(hello.endpoint):
        return f"its endpoint {hello.endpoint!r} {fault}"
    if hello.endpoint.partition(":")[0] != node.endpoint.partition(":")[0]:
        return f"its endpoint {hello.endpoint!r} has another transport than {node.endpoint}"
    if len(hello.groups) > MAX_GROUPS:
        return f"it is in more than {MAX_GROUPS} groups"
    if len(node.peers) >= node.settings.max_peers and uuid not in node.peers:
        return f"there are {node.settings.max_peers} peers already"
    return ""


def fault_in_rate(node: LocalNode, uuid: bytes, now: float) -> str:
    """Return why a HELLO comes too early, also from a peer that was expelled; "" where it does not."""
    greeted = node.greeted
    while greeted and now - next(iter(greeted.values())) >= AGAIN_S:
        del greeted[next(iter(greeted))]
    if uuid in greeted:
        return "another HELLO came just before"
    if len(greeted) >= node.settings.max_peers:
        return f"{len(greeted)} peers have greeted just before"
    return ""


def watch(node: LocalNode, remote: Remote) -> Story:
    """Ping a silent peer, and disconnect one that stays silent; RFC 36, "The PING Command"."""
    while True:
        now = yield Now()
        evasive_at = remote.received_at + node.settings.evasive_after
        expired_at = remote.received_at + node.settings.expired_after
        if now >= expired_at:
            yield from expel(node, remote, f"was silent for {now - remote.received_at:.1f} s")
            return
        if now >= evasive_at and not remote.evasive:
            remote.evasive = True
            yield remote.send(Ping)
        yield Wait(("watch", remote.uuid), expired_at if remote.evasive else min(evasive_at, expired_at))


def expel(node: LocalNode, remote: Remote, reason: str) -> Story:
    """Disconnect a peer."""
    yield from remove(node, remote, reason)
    yield DropPeer(remote.connection)
    yield Wake(remote.connection, reason)


def lose(node: LocalNode, connection: PeerId, reason: str) -> Story:
    """Handle that a connection is closed."""
    yield Wake(connection, reason)  # of `keep_dialing`
    for remote in [one for one in node.peers.values() if one.connection == connection]:
        yield from remove(node, remote, reason)


def remove(node: LocalNode, remote: Remote, reason: str) -> Story:
    """Forget a peer."""
    if node.peers.get(remote.uuid) is remote:
        del node.peers[remote.uuid]
        yield Log(events.PeerExited(remote.label, remote.name, reason))


def answer(node: LocalNode, call: int, request: Any) -> Story:
    """Perform a call of the program."""
    match request:
        case SetMembership(group=group, is_member=is_member):
            yield from set_membership(node, group, is_member)
        case WhisperTo(peer=uuid, content=content):
            if (remote := node.peers.get(uuid)) is None:
                yield Return(call, error=ZreError(f"there is no peer {uuid.hex()}"))
                return
            yield remote.send(Whisper, content=content)
        case ShoutTo(group=group, content=content):
            remotes = [one for one in node.peers.values() if group in one.groups]
            for remote in remotes:
                yield remote.send(Shout, group=group, content=content)
            yield Return(call, len(remotes))
            return
    yield Return(call)


def set_membership(node: LocalNode, group: str, is_member: bool) -> Story:
    """Join or leave a group, and notify every peer; RFC 36, "The JOIN Command"."""
    if (group in node.groups) is is_member:
        return
    if is_member:
        node.groups[group] = None
    else:
        del node.groups[group]
    node.status = (node.status + 1) & 0xFF
    for remote in node.peers.values():
        yield remote.send(Join if is_member else Leave, group=group, status=node.status)


def reload(node: LocalNode, settings: ZreSettings) -> Story:
    """Apply other settings: groups, endpoints, and times. Name, headers and bind need a restart.

    A peer at a removed endpoint stays connected, and is not greeted again when it has gone.
    """
    before, node.settings = node.settings, settings
    for group in (*before.groups, *settings.groups):
        yield from set_membership(node, group, group in settings.groups)
    for endpoint in sorted(set(before.endpoint) ^ set(settings.endpoint)):
        yield Cancel((DIAL, endpoint))
        node.beacons.pop(endpoint, None)
        if (remote := node.dialing.pop(endpoint, None)) is not None:
            yield DropPeer(remote.connection)
    for endpoint in [one for one in settings.endpoint if one not in before.endpoint]:
        yield Fork(keep_dialing(node, endpoint), (DIAL, endpoint))
    for uuid in node.peers:
        yield Wake(("watch", uuid))
