"""`specwire flux status`: status of this user's brokers on this machine.

Each broker answers on its status socket, not through the tree. So a broker answers even if it is
disconnected or waits for its parent.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Annotated

import typer

from specwire.runtime.cli.console import fail, print_error, wide_output

if TYPE_CHECKING:
    from specwire.runtime.flux.status import BrokerStatus

JOB_FAILED = 1
COLUMNS = (
    "process",
    "rank",
    "uuid",
    "phase",
    "subtree",
    "below",
    "clients",
    "pending",
    "requests",
    "up",
)


def status(
    as_json: Annotated[
        bool, typer.Option("--json", help="Write a list of JSON documents, one for each broker.")
    ] = False,
) -> None:
    """Tell of each broker whether it is in the tree, what is below it, who is connected, and what was counted."""
    import msgspec

    from specwire.runtime.cli.status_asking import NoAnswerError, ask_all
    from specwire.runtime.flux.status import ROLE, BrokerStatus
    from specwire.runtime.transport.status_folder import list_addresses, locate_status_folder

    answers = ask_all(list_addresses(locate_status_folder(os.environ)), (ROLE,), BrokerStatus)
    found = sorted(
        (answer for answer in answers if isinstance(answer, BrokerStatus)),
        key=lambda broker: (folder_of(broker), broker.rank),
    )
    silent = [answer for answer in answers if isinstance(answer, NoAnswerError)]
    if as_json:
        # ASCII alone: names come from the wire, and a terminal obeys more than a program would.
        typer.echo(json.dumps(msgspec.to_builtins(found), indent=2))
    elif found:
        print_brokers(found)
    elif not silent:
        print_error("no Flux broker of yours runs on this machine")
    if silent:
        fail("; ".join(map(str, silent)), status=JOB_FAILED)


def print_brokers(brokers: Sequence[BrokerStatus]) -> None:
    """Print a table for each instance, by the folder of its sockets."""
    from rich.table import Table
    from rich.text import Text

    from specwire.runtime.log.text import show

    for folder, instance in groupby(brokers, key=folder_of):
        several = [*instance]
        table = Table(box=None, padding=(0, 1, 0, 0))
        for name in COLUMNS:
            table.add_column(name, overflow="fold")
        for broker in several:
            table.add_row(*(Text(show(cell)) for cell in describe(broker)))
        console = wide_output()
        console.print(f"{show(folder)}: {several[0].size} brokers", markup=False, soft_wrap=True)
        console.print(table)


def folder_of(broker: BrokerStatus) -> str:
    """Return the folder of a broker's socket, which those of an instance on one machine share."""
    from specwire.runtime.flux.uri import SCHEME

    return os.path.dirname(broker.uri.removeprefix(SCHEME))


def describe(broker: BrokerStatus) -> tuple[str, ...]:
    """Return the cells of a broker's row."""
    from specwire.runtime.flux.narration import shorten

    present = sum(child.present for child in broker.children)
    pending = broker.pending_upward + sum(child.pending for child in broker.children)
    return (
        str(broker.pid),
        str(broker.rank),
        shorten(broker.uuid),
        broker.phase,
        broker.subtree,
        f"{present}/{len(broker.children)}",
        f"{broker.local.clients:,}",
        f"{pending:,}",
        f"{broker.counters.requests:,}",
        f"{broker.up_s:,.0f} s",
    )
