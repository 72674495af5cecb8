"""What `serve` and `subscribe` do while their peer runs: answer for its status, report, and wait for the end."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any

import msgspec

from specwire.runtime.cli.peer_log import PeerLog
from specwire.runtime.filemq.reporting import describe_done, describe_left, report
from specwire.runtime.filemq.status import PeerStatus
from specwire.runtime.transport.errors import TransportError
from specwire.runtime.transport.status_folder import address_in, locate_status_folder, open_status_folder
from specwire.runtime.transport.status_socket import StatusSocket

ROLES = {"server": "filemq-server", "subscriber": "filemq-subscriber"}
"""How the sockets of these peers are named, by the role in the document."""

JOB_FAILED = 1


class Manner(msgspec.Struct, frozen=True):
    """How a peer behaves towards the person who runs it."""

    report_every_s: float
    as_json: bool
    answer_status: bool


@asynccontextmanager
async def attended(describe: Callable[[], PeerStatus], manner: Manner, log: PeerLog) -> AsyncIterator[None]:
    """While this lasts, reports are written and the status is answered; then, what was left is told."""
    answering = await _answer(describe, log) if manner.answer_status else None
    reporting = asyncio.create_task(_report(describe, manner.report_every_s, log))
    try:
        yield
        for line in describe_left(describe()):
            log.line(line)
    finally:
        reporting.cancel()
        with suppress(asyncio.CancelledError):
            await reporting
        if answering is not None:
            await answering.close()


async def is_started(start: Coroutine[Any, Any, None], stop: asyncio.Future[None]) -> bool:
    """Start a peer; False where it was asked to stop before it was ready, and nothing of it is left."""
    starting = asyncio.create_task(start)
    await asyncio.wait((starting, stop), return_when=asyncio.FIRST_COMPLETED)
    if starting.done() or not starting.cancel():
        await starting
        return True
    with suppress(asyncio.CancelledError):
        await starting
        return True
    return False


def conclude(status: PeerStatus, manner: Manner, log: PeerLog) -> None:
    """Tell what was done in all."""
    log.line(describe_done(status))
    if manner.as_json:
        sys.stdout.write(msgspec.json.encode(status).decode() + "\n")


async def _answer(describe: Callable[[], PeerStatus], log: PeerLog) -> StatusSocket | None:
    """Open the socket; a peer that cannot be asked does its work all the same."""
    folder = locate_status_folder(os.environ)
    try:
        open_status_folder(folder)
        address = address_in(folder, ROLES[_role(describe())], os.getpid())
        answering = StatusSocket(address.path, lambda: msgspec.json.encode(describe()))
        await answering.open()
    except TransportError as error:
        log.line(f"`specwire filemq status` will not find this: {error}")
        return None
    return answering


def _role(status: PeerStatus) -> str:
    return str(type(status).__struct_config__.tag)


async def _report(describe: Callable[[], PeerStatus], every_s: float, log: PeerLog) -> None:
    while every_s:
        await asyncio.sleep(every_s)
        log.line(report(describe()))
