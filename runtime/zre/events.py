"""Events of a ZRE peer, for its log and for the program. A peer is named by its UUID in hexadecimal."""

from __future__ import annotations

from collections.abc import Mapping

from specwire.runtime.kernel.log import LogEvent


class PeerEntered(LogEvent, frozen=True):
    """A peer has sent HELLO, and can be written to."""

    peer: str
    name: str
    endpoint: str
    headers: Mapping[str, str] = {}
    limit = "more peers entered"
    text = "{0.name} ({0.peer:.8}) entered at {0.endpoint}"


class PeerExited(LogEvent, frozen=True):
    """A peer has gone, or was disconnected."""

    peer: str
    name: str
    reason: str
    limit = "more peers exited"
    text = "{0.name} ({0.peer:.8}) exited: {0.reason}"


class GroupJoined(LogEvent, frozen=True):
    """A peer is in a group from now on."""

    peer: str
    name: str
    group: str
    limit = "more groups were joined"
    text = "{0.name} joined {0.group}"


class GroupLeft(LogEvent, frozen=True):
    """A peer has left a group."""

    peer: str
    name: str
    group: str
    text = "{0.name} left {0.group}"


class Whispered(LogEvent, frozen=True):
    """A peer has sent a message to this peer alone."""

    peer: str
    name: str
    content: tuple[bytes, ...]

    def describe(self) -> str:
        """Return the text."""
        return f"{self.name} whispers: {show_content(self.content)}"


class Shouted(LogEvent, frozen=True):
    """A peer has sent a message to a group in which this peer is."""

    peer: str
    name: str
    group: str
    content: tuple[bytes, ...]

    def describe(self) -> str:
        """Return the text."""
        return f"{self.name} shouts to {self.group}: {show_content(self.content)}"


class NotReached(LogEvent, frozen=True):
    """No peer answers at an endpoint; another attempt follows."""

    endpoint: str
    reason: str
    level = "warning"
    limit = "more endpoints did not answer"
    text = "no peer at {0.endpoint}: {0.reason}"


class NotAnnounced(LogEvent, frozen=True):
    """A beacon cannot be sent; the next attempt follows at the interval of beacons."""

    network: str
    reason: str
    level = "warning"
    text = "cannot send beacons to {0.network}: {0.reason}"


class MessageIgnored(LogEvent, frozen=True):
    """A message was not accepted."""

    peer: str
    reason: str
    level = "warning"
    limit = "more messages were ignored"
    text = "ignored a message of {0.peer:.8}: {0.reason}"


def show_content(content: tuple[bytes, ...]) -> str:
    """Return frames as text, separated by bars."""
    return " | ".join(frame[:400].decode(errors="backslashreplace") for frame in content)
