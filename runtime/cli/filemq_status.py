"""`specwire filemq status`: the servers and subscribers that this user runs on this machine."""

from __future__ import annotations

import json
import os
from typing import Annotated

import msgspec
import typer

from specwire.runtime.cli.console import fail, print_error
from specwire.runtime.cli.filemq_running import JOB_FAILED, ROLES
from specwire.runtime.cli.filemq_status_tables import print_status
from specwire.runtime.cli.status_asking import NoAnswerError, ask_all
from specwire.runtime.filemq.names import as_utf8
from specwire.runtime.filemq.status import PeerStatus
from specwire.runtime.transport.status_folder import list_addresses, locate_status_folder


def status(
    target: Annotated[
        str | None,
        typer.Argument(
            help="Only this one: its process id, its endpoint, its inbox, or all with the role "
            "server or subscriber.",
            show_default=False,
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Write a list of JSON documents, one for each process.")
    ] = False,
) -> None:
    """Show running peers, their clients, transfers and counters."""
    answers = ask_all(list_addresses(locate_status_folder(os.environ)), ROLES.values(), PeerStatus)
    found = [answer for answer in answers if isinstance(answer, PeerStatus) and is_meant(answer, target)]
    silent = [answer for answer in answers if isinstance(answer, NoAnswerError)]
    if target is not None and not found:
        fail("; ".join([f"no FILEMQ peer of yours is {target!r}", *map(str, silent)]), status=JOB_FAILED)
    if as_json:
        # ASCII only: names come from the wire, and may contain control sequences of terminals.
        typer.echo(json.dumps(msgspec.to_builtins(found), indent=2))
    elif found:
        print_status(found)
    elif not silent:
        print_error("no FILEMQ peer of yours runs on this machine")
    if silent and target is None:
        fail("; ".join(map(str, silent)), status=JOB_FAILED)


def is_meant(status: PeerStatus, target: str | None) -> bool:
    """Return whether `target` names this peer; None names all."""
    names = {str(status.process.pid), status.endpoint, str(type(status).__struct_config__.tag)}
    inbox = getattr(status, "inbox", None)
    return (
        target is None or target in names or (inbox is not None and as_utf8(os.path.abspath(target)) == inbox)
    )
