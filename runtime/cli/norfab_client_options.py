"""What the commands of a NORFAB client have in common: which broker, who asks, where jobs are kept."""

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
        help=f"Where the broker is; again for others to move on to. (default: {DEFAULT_ENDPOINT})",
        show_default=False,
    ),
]

UserOption = Annotated[
    str | None,
    typer.Option(
        "--as",
        metavar="USER",
        help=f"Whose key is used. (default: {CLIENT}, or {ADMIN} to look at the broker)",
        show_default=False,
    ),
]

FolderOption = Annotated[
    Path | None,
    typer.Option(
        "--folder",
        metavar="DIR",
        help="Where jobs and results are kept. (default: specwire/norfab/client in your data folder)",
        show_default=False,
    ),
]

DurabilityOption = Annotated[
    Literal["process", "full"],
    typer.Option(help="What is kept outlives the process, or the loss of power too."),
]

ProtocolOption = Annotated[
    Literal["norfab_ascii", "norfab"],
    typer.Option(help="How this client writes: as deployed peers do, or as the specification says."),
]

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]

TimeoutOption = Annotated[
    float, typer.Option(min=0.1, max=7 * 86400, metavar="SECONDS", help="How long to wait.")
]


class Options(msgspec.Struct, frozen=True):
    """What the user said about the broker and the client."""

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
        """Where this user's commands keep their jobs."""
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
    """Run a client in the first free place, or in `place` where that is free; without `keeping` in memory."""
    from specwire.runtime.cli.norfab_options import open_tap, read_security
    from specwire.runtime.norfab.client import NorfabClient
    from specwire.runtime.norfab.client.places import candidates
    from specwire.runtime.norfab.store.errors import StoreError, StoreInUseError
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
            fail(f"every place below {options.places} is in use", status=JOB_FAILED)
        try:
            yield client
        finally:
            await client.stop()


def run_story(story: Coroutine[Any, Any, Value]) -> Value:
    """Run what a command does; what a user can cause ends with a sentence."""
    import asyncio

    from specwire.runtime.norfab.client import JobError, RequestError, UnknownJobError
    from specwire.runtime.norfab.store.errors import StoreError

    try:
        return asyncio.run(story)
    except (JobError, RequestError, StoreError) as error:
        fail(str(error), status=JOB_FAILED)
    except UnknownJobError as error:
        fail(str(error.args[0]))
