"""What clients do to a broker and its workers by their management, for the log and the accounts; who only looks is not told."""

from __future__ import annotations

import msgspec

from specwire.runtime.norfab.access import Access
from specwire.runtime.norfab.commands import Command, Get, Mmi, Post
from specwire.runtime.norfab.management import SERVICE
from specwire.runtime.norfab.serve.events import Managed

SERVICES = (SERVICE, "mmi.service.worker")
LOOKS = ("show_", "get_")
LONGEST_TASK = 80
_CALLS = (Post, Get, Mmi)


class _Call(msgspec.Struct, frozen=True):
    task: str = ""


_CALL = msgspec.json.Decoder(_Call)


def find_management(peer: bytes, user: str, command: Command, access: Access) -> Managed | None:
    """Return what `command` would do to the broker or to workers, and whether it may; None where it does nothing."""
    if not isinstance(command, _CALLS) or command.service not in SERVICES:
        return None
    try:
        task = _CALL.decode(command.body).task
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None
    if not task or task.startswith(LOOKS):
        return None
    allowed = access.may_manage(user, task)
    return Managed(peer, user, command.service, task[:LONGEST_TASK], command.target, allowed)
