"""Options that `specwire peer` and `specwire replay` have in common, and what they mean."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from specwire.runtime.cli.console import fail

if TYPE_CHECKING:
    from specwire.runtime.transport.security import CurveClient, Null, PlainClient

FAILED = 1

AnywhereOption = Annotated[
    bool, typer.Option("--anywhere", help="Also connect to other machines; by default to this one only.")
]

CurveOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Encrypt, and prove who this is, with this secret key (.key_secret; `specwire keys` makes one).",
        show_default=False,
    ),
]

ServerKeyOption = Annotated[
    str | None,
    typer.Option(
        metavar="KEY",
        help="With --curve: the public key that the other side has to prove, or its .key file.",
        show_default=False,
    ),
]

PatienceOption = Annotated[
    float, typer.Option(min=0.01, metavar="SECONDS", help="How long an answer may take.")
]

IdentityOption = Annotated[
    str | None,
    typer.Option(
        metavar="TEXT",
        help="Routing id of the connection; a number comes behind it where there are several.",
        show_default=False,
    ),
]

JsonOption = Annotated[bool, typer.Option("--json", help="Print the report as JSON.")]


LONGEST_IDENTITY_OCTETS = 200
"""Beyond a number behind it, the most that ZeroMQ takes is 255."""


def check_identity(identity: str) -> None:
    """End the command where `identity` cannot begin a routing id."""
    octets = len(identity.encode())
    if not 0 < octets <= LONGEST_IDENTITY_OCTETS or identity.startswith("\0"):
        fail(f"--identity has {octets} octets; 1 to {LONGEST_IDENTITY_OCTETS} are wanted, the first not NUL")


def choose_endpoint(
    connect: str | None, bind: str | None, curve: Path | None, *, anywhere: bool, connecting: str
) -> str:
    """Return the one endpoint that was given; ends the command where none or both were, or it cannot be used.

    Args:
        connecting: name of the option that `connect` is.
    """
    if connect is not None and bind is None:
        check_target(connect, anywhere=anywhere)
        return connect
    if bind is None or connect is not None:
        fail(f"{connecting} ENDPOINT or --bind ENDPOINT is wanted, one of them")
    if curve is not None:
        fail(f"--curve goes with {connecting}: who listens here does not ask others who they are")
    from specwire.runtime.transport.endpoint import fault_in_endpoint
    from specwire.runtime.transport.security import is_exposed

    if fault := fault_in_endpoint(bind, listening=True):
        fail(f"{bind} {fault}")
    if is_exposed(bind):
        fail(f"{bind} would be open to other machines; listen on this one only: tcp://127.0.0.1:PORT")
    return bind


def check_target(endpoint: str, *, anywhere: bool) -> None:
    """End the command where `endpoint` is none, or not on this machine and the user has not said that it may be so."""
    from specwire.runtime.rehearsal.lines import LOCAL
    from specwire.runtime.transport.endpoint import fault_in_endpoint
    from specwire.runtime.transport.security import is_exposed

    if endpoint.startswith(LOCAL):
        return
    if fault := fault_in_endpoint(endpoint, listening=False):
        fail(f"{endpoint} {fault}")
    if not anywhere and is_exposed(endpoint):
        fail(f"{endpoint} is not on this machine; say --anywhere if whoever runs it wants this")


def read_security(curve: Path | None, server_key: str | None) -> CurveClient | PlainClient | Null:
    """Return how this side proves itself; ends the command where the keys cannot be used."""
    from specwire.runtime.filemq.access import AccessError, read_client_security

    try:
        return read_client_security(
            curve=curve, server_key=server_key, user=None, password_file=None, environment=os.environ
        )
    except AccessError as error:
        fail(str(error))
