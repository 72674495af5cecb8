"""Disk work of an inbox that is waited for."""

from __future__ import annotations

from specwire.runtime.filemq.diskwork import DiskAction, Outcome
from specwire.runtime.filemq.inbox import Inbox


def perform(inbox: Inbox, *actions: DiskAction) -> list[Outcome]:
    """Do pieces of work in order, and return all their outcomes."""
    return [*inbox.perform(actions), *inbox.perform([])]
