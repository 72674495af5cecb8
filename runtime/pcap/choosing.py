"""Which protocol the messages of a connection are of, and which role each side has.

Where several packages come into question, each message is shown to all that have read every message before it, and
the first that reads it is believed; so a connection settles on one package after few messages. Flux and CMB1 read many of
each other's messages, FILEMQ's two dialects some: the order of `PREFERRED` settles these.

A role follows from the side: servers, brokers and receivers are connected to. Which of several roles the connecting side
has, follows from the messages that it sends.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache
from inspect import signature
from types import ModuleType
from typing import Any, NamedTuple

from specwire.generated.errors import DecodeError
from specwire.runtime.packages import HINT

PREFERRED = ("flux", "filemq", "norfab", "norfab_ascii", "libfilemq", "zre", "cmb1", "cmb1_json")
TRANSPORT = "zmtp"
"""What carries the others, and is never what is carried."""

_HEADER = re.compile(r"NFP([A-Z])\d\d")
"""NORFAB's frame that names protocol and role."""

_LISTENING = {"server", "broker", "receiver"}


def in_order(names: Iterable[str]) -> list[str]:
    """Return the names of packages in the order in which they are tried."""
    known = [name for name in names if name != TRANSPORT]
    return sorted(known, key=lambda name: (PREFERRED.index(name) if name in PREFERRED else 99, name))


class Reading(NamedTuple):
    """What came of decoding one message."""

    protocol: str | None
    message: Any
    error: Exception | str | None


class Chooser:
    """Decodes the messages of one connection.

    Args:
        packages: those that come into question, in the order of preference.
        unknown: what the messages are said to be of, where there is no package for it.
    """

    def __init__(self, packages: Sequence[ModuleType], *, unknown: str | None = None) -> None:
        self._open = list(packages)
        self._unknown = unknown
        self._settled = len(self._open) == 1

    @property
    def package(self) -> ModuleType | None:
        """The package that is believed now; None before any has read a message."""
        return self._open[0] if self._settled else None

    @property
    def is_open(self) -> bool:
        """Whether several packages come into question, and none has read a message yet."""
        return not self._settled and bool(self._open)

    def decode(self, frames: Sequence[bytes], sender: str | None = None) -> Reading:
        """Decode one message; where nothing reads it, the reading has the error."""
        readings = [(package, _decode(package, frames, sender)) for package in self._open]
        good = [(package, found) for package, found in readings if not isinstance(found, DecodeError)]
        if good:
            self._open, self._settled = [package for package, _ in good], True
            return Reading(protocol_name(good[0][0]), good[0][1], None)
        if self._settled:
            return Reading(protocol_name(readings[0][0]), None, readings[0][1])
        if not self._open:
            return Reading(None, None, f"there is no protocol {self._unknown!r} here: {HINT}")
        tried = ", ".join(protocol_name(package) for package in self._open)
        return Reading(None, None, f"a message of none of the protocols {tried}")

    def reads(self, frames: Sequence[bytes]) -> bool:
        """Say whether any package in question reads a message; nothing is settled by that."""
        return any(not isinstance(_decode(package, frames, None), DecodeError) for package in self._open)


def _decode(package: ModuleType, frames: Sequence[bytes], sender: str | None) -> Any:
    try:
        return package.decode(frames, **sender_argument(package, sender))
    except DecodeError as error:
        return error


def sender_argument(package: ModuleType, sender: str | None) -> dict[str, str]:
    """Return the argument of `decode` that says who sent the frames; nothing where their octets say what they are."""
    return {"sender": str(sender)} if sender and _takes_sender(package) else {}


@cache
def _takes_sender(package: ModuleType) -> bool:
    return "sender" in signature(package.decode).parameters


def protocol_name(package: ModuleType) -> str:
    """Return the name by which a package's messages know their protocol."""
    return str(next(iter(package.MESSAGES.values())).PROTOCOL)


class Roles:
    """The roles of the two sides of one connection, by what they send."""

    def __init__(self) -> None:
        self._package: ModuleType | None = None
        self._connecting: list[str] = []

    def of(self, package: ModuleType | None, message: Any, *, is_listener: bool) -> str:
        """Return the letter of the side that sent `message` (None for one that could not be read), or nothing."""
        if package is None:
            return ""
        roles = role_names(package)
        if package is not self._package:
            self._package = package
            self._connecting = [letter for letter, name in roles.items() if name not in _LISTENING]
        if is_listener:
            return next((letter for letter, name in roles.items() if name in _LISTENING), "")
        if message is not None and len(self._connecting) > 1:
            stated = _HEADER.fullmatch(str(getattr(message, "header", "")))
            able = {stated[1]} if stated else senders(package, type(message).__name__)
            self._connecting = [letter for letter in self._connecting if letter in able] or self._connecting
        return self._connecting[0] if self._connecting else ""


def role_names(package: ModuleType) -> dict[str, str]:
    """Return what each letter of a protocol's roles stands for."""
    return dict(package.machine.ROLES)


@cache
def _labels(package: ModuleType) -> frozenset[str]:
    labels: set[str] = set()
    for dialog in getattr(package.machine, "DIALOGS", {}).values():
        for state in dialog.strict.values():
            labels.update(state)
    return frozenset(labels)


def senders(package: ModuleType, message: str) -> set[str]:
    """Return the letters of the roles that send a message, by the dialogs of its protocol."""
    known = (label.partition(":") for label in _labels(package))
    return {role for role, _, name in known if name == message}
