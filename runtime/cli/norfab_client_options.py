"""Common parts of the NORFAB client commands: options, and a running client."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

import msgspec
import typer

from specwire.runtime.cli.console import fail
from specwire.runtime.cli.norfab_options import DEFAULT_ENDPOINT

if TYPE_CHECKING:
    from specwire.runtime.norfab.client import NorfabClient
    from specwire.runtime.norfab.client.events import Happening

JOB_FAILED = 1
ADMIN = "admin"
CLIENT = "client"
ANSWER_S = 15.0
EXIT_STATUSES = "Exit status: 0; 1 when the job has failed or there is no answer; 2 for usage and bad input."

Value = TypeVar("Value")

BrokerOption = Annotated[
    list[str] | None,
    typer.Option(
        "--broker",
        metavar="ENDPOINT",
        help=f"Broker to use; repeatable: brokers to try, in order. (default: {DEFAULT_ENDPOINT})",
        show_default=False,
    ),
]

UserOption = Annotated[
    str | None,
    typer.Option(
        "--as",
        metavar="USER",
        help=f"User whose key the client uses. (default: {CLIENT}, or {ADMIN} to look at the broker)",
        show_default=False,
    ),
]

FolderOption = Annotated[
    Path | None,
    typer.Option(
        "--folder",
        metavar="DIR",
        help="Folder for jobs and results. (default: specwire/norfab/client in your data folder)",
        show_default=False,
    ),
]

DurabilityOption = Annotated[
    Literal["process", "full"],
    typer.Option(help="What stored jobs survive: a kill, or also a loss of power."),
]

ProtocolOption = Annotated[
    Literal["norfab_ascii", "norfab"],
    typer.Option(help="Encoding of messages: of deployed peers, or of the specification."),
]

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]

TimeoutOption = Annotated[
    float, typer.Option(min=0.1, max=7 * 86400, metavar="SECONDS", help="How long to wait.")
]


class Options(msgspec.Struct, frozen=True):
    """Options that select the broker and the client."""

    brokers: list[str] | None
    keys: Path | None
    user: str
    insecure: bool
    folder: Path | None = None
    durability: Literal["process", "full"] = "process"
    protocol: Literal["norfab_ascii", "norfab"] = "norfab_ascii"
    capture: Path | None = None

    @property
    def endpoints(self) -> list[str]:
        """The brokers to try."""
        return self.brokers or [DEFAULT_ENDPOINT]

    @property
    def places(self) -> Path:
        """Folder that contains the clients of this user."""
        from specwire.runtime.norfab.security.keyring import default_folder

        return self.folder or default_folder(os.environ) / "client"


@asynccontextmanager
async def client_of(
    options: Options,
    on_event: Callable[[Happening], None] | None = None,
    *,
    place: Path | None = None,
    keeping: bool = True,
) -> AsyncIterator[NorfabClient]:
    """Run a client in `place`, or in the first free folder; without `keeping` in memory."""
    from specwire.runtime.cli.norfab_options import open_tap, read_security
    from specwire.runtime.kernel.store import StoreError, StoreInUseError
    from specwire.runtime.norfab.client import NorfabClient
    from specwire.runtime.norfab.client.places import candidates
    from specwire.runtime.transport.keys import KeyFileError

    try:
        security = read_security(options.keys, options.user, insecure=options.insecure)
    except KeyFileError as error:
        fail(
            f"{error}; `specwire norfab keys` makes keys, --keys names their folder, --insecure does without"
        )
    places = [*([] if place is None else [place]), *candidates(options.places)] if keeping else [None]
    with open_tap(options.capture, "client") as tap:
        for folder in places:
            try:
                client = NorfabClient(
                    options.endpoints,
                    name=None if options.insecure else options.user,
                    folder=folder,
                    security=security,
                    durability=options.durability,
                    protocol=options.protocol,
                    resume=False,
                    tap=tap,
                    on_event=on_event,
                )
                await client.start()
                break
            except StoreInUseError:
                continue
            except StoreError as error:
                fail(str(error), status=JOB_FAILED)
            except ValueError as error:
                fail(str(error))
        else:
            fail(f"every folder below {options.places} is in use", status=JOB_FAILED)
        try:
            yield client
        finally:
            await client.stop()


def run_story(story: Coroutine[Any, Any, Value]) -> Value:
    """Run the coroutine of a command; print an error that a user can cause, and exit."""
    import asyncio

    from specwire.runtime.kernel.store import StoreError
    from specwire.runtime.norfab.client import JobError, RequestError, UnknownJobError

    try:
        return asyncio.run(story)
    except (JobError, RequestError, StoreError) as error:
        fail(str(error), status=JOB_FAILED)
    except UnknownJobError as error:
        fail(str(error.args[0]))
