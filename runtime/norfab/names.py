"""Names of workers, clients, services and jobs, and what a target means.

A worker's name is its routing id. It stands in targets and is a key of JSON, so it must be text, must not be one of
the words that a target knows, and must not have what separates names. A client's name is never looked at, only
sent back, so it may be any octets.
"""

from __future__ import annotations

import re
from typing import Literal

import msgspec

MAX_NAME_OCTETS = 255
MAX_TARGETS = 10_000
_PRINTABLE = re.compile(r"[!-~]{1,255}")

TargetKind = Literal["all", "any", "names"]


class Target(msgspec.Struct, frozen=True):
    """Which workers are meant; `names` without repetition, in the order given."""

    kind: TargetKind
    names: tuple[str, ...] = ()


_ALL, _ANY = Target("all"), Target("any")


class InvalidNameError(ValueError):
    """A name, a uuid or a target that is not one; says why."""


def worker_name(peer: bytes) -> str:
    """Return the name of the worker whose routing id is `peer`; raises InvalidNameError."""
    try:
        name = peer.decode()
    except UnicodeDecodeError:
        raise InvalidNameError("the name is not UTF-8") from None
    if name in ("", "all", "any"):
        raise InvalidNameError(f"a worker cannot be named {name!r}: targets have that word")
    if len(peer) > MAX_NAME_OCTETS or not name.isprintable() or any(mark in name for mark in ',[]" '):
        raise InvalidNameError(
            f"a worker cannot be named {name[:80]!r}: up to 255 printable octets, no comma, bracket, quote or space"
        )
    return name


def check_service(service: str) -> str:
    """Return `service`; raises InvalidNameError where it is not 1 to 255 printable ASCII characters."""
    if not _PRINTABLE.fullmatch(service):
        raise InvalidNameError("a service has a name of 1 to 255 printable characters")
    return service


def check_uuid(uuid: str) -> str:
    """Return `uuid`; raises InvalidNameError where it is not 1 to 255 printable ASCII characters."""
    if not _PRINTABLE.fullmatch(uuid):
        raise InvalidNameError("a job has a uuid of 1 to 255 printable characters")
    return uuid


def read_target(text: str) -> Target:
    """Return which workers `text` means: nothing or ``all``, ``any``, a name, names with commas, a JSON list."""
    if text in ("", "all"):
        return _ALL
    if text == "any":
        return _ANY
    if text.startswith("["):
        try:
            names = msgspec.json.decode(text, type=list[str])
        except (msgspec.DecodeError, RecursionError):
            raise InvalidNameError("a target that begins with '[' is a JSON list of names") from None
    else:
        names = [name.strip() for name in text.split(",")]
    names = list(dict.fromkeys(names))
    if not names or len(names) > MAX_TARGETS:
        raise InvalidNameError(f"a target has 1 to {MAX_TARGETS} names")
    if names in (["all"], ["any"]):
        return read_target(names[0])
    return Target("names", tuple(worker_name(name.encode("utf-8", "surrogatepass")) for name in names))
