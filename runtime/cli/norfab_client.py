"""`specwire norfab client`: give jobs to workers, and collect what comes of them.

A job is kept on disk before it is sent, so an interrupt loses nothing: `client collect` goes on.
"""

from __future__ import annotations

import asyncio
import sys
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from uuid import uuid4

import typer

from specwire.runtime.cli.console import fail, messages
from specwire.runtime.cli.norfab_client_jobs import (
    collect_later,
    moment,
    read_arguments,
    read_targets,
    tell_result,
    wait_for,
)
from specwire.runtime.cli.norfab_client_options import (
    ANSWER_S,
    CLIENT,
    EXIT_STATUSES,
    JOB_FAILED,
    BrokerOption,
    DurabilityOption,
    FolderOption,
    JsonOption,
    Options,
    ProtocolOption,
    TimeoutOption,
    UserOption,
    client_of,
    run_story,
)
from specwire.runtime.cli.norfab_options import CaptureOption, InsecureOption, KeysOption

if TYPE_CHECKING:
    from specwire.runtime.norfab.client import JobResult

app = typer.Typer(help="Give jobs to workers, and collect what comes of them.", no_args_is_help=True)

ServiceArgument = Annotated[
    str, typer.Argument(metavar="SERVICE", help="Whose workers do it.", show_default=False)
]
TaskArgument = Annotated[str, typer.Argument(metavar="TASK", help="What they do.", show_default=False)]
ArgsArgument = Annotated[
    list[str] | None,
    typer.Argument(metavar="ARG", help="Arguments: JSON where it is JSON, else text.", show_default=False),
]
KwargsOption = Annotated[
    str | None,
    typer.Option(metavar="JSON", help="Arguments by name, as a JSON object.", show_default=False),
]
TargetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--target",
        metavar="TARGET",
        help="all workers of the service, any of them, or a name; again for more names. (default: all)",
        show_default=False,
    ),
]
ResourceOption = Annotated[
    list[str] | None,
    typer.Option(
        "--resource",
        metavar="NAME",
        help="Only workers that manage it; again for more.",
        show_default=False,
    ),
]
UuidArgument = Annotated[str, typer.Argument(metavar="UUID", help="The job's.", show_default=False)]
OfServiceOption = Annotated[
    str | None,
    typer.Option(
        "--service",
        help="The job's, where it is not one of your own: the broker is asked for it.",
        show_default=False,
    ),
]
QuietOption = Annotated[bool, typer.Option("--quiet", help="Tell of no progress.")]


@app.command(epilog=EXIT_STATUSES)
def run(
    service: ServiceArgument,
    task: TaskArgument,
    args: ArgsArgument = None,
    kwargs: KwargsOption = None,
    target: TargetOption = None,
    resource: ResourceOption = None,
    timeout: TimeoutOption = 600.0,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    broker: BrokerOption = None,
    keys: KeysOption = None,
    user: UserOption = None,
    insecure: InsecureOption = False,
    folder: FolderOption = None,
    durability: DurabilityOption = "process",
    protocol: ProtocolOption = "norfab_ascii",
    capture: CaptureOption = None,
) -> None:
    """Have a task done, and wait for the results."""
    options = Options(broker, keys, user or CLIENT, insecure, folder, durability, protocol, capture)
    given, named = read_arguments(args, kwargs)
    targets = read_targets(target)

    async def story() -> JobResult:
        from specwire.runtime.cli.norfab_client_view import JobView

        view = JobView(f"{task} of {service}", quiet=quiet)
        uuid = uuid4().hex
        async with client_of(options, view.tell) as client:

            async def job() -> JobResult:
                await client.submit(
                    service,
                    task,
                    *given,
                    targets=targets,
                    timeout=timeout,
                    kwargs=named,
                    resources=resource or (),
                    uuid=uuid,
                )
                return await client.collect(uuid, timeout)

            try:
                return await wait_for(client, uuid, view, job())
            except (ValueError, TypeError) as error:
                fail(str(error))

    tell_result(run_story(story()), as_json=as_json)


@app.command(epilog=EXIT_STATUSES)
def submit(
    service: ServiceArgument,
    task: TaskArgument,
    args: ArgsArgument = None,
    kwargs: KwargsOption = None,
    target: TargetOption = None,
    resource: ResourceOption = None,
    timeout: Annotated[
        float,
        typer.Option(min=0.1, max=7 * 86400, metavar="SECONDS", help="How long the job may take."),
    ] = 600.0,
    as_json: JsonOption = False,
    broker: BrokerOption = None,
    keys: KeysOption = None,
    user: UserOption = None,
    insecure: InsecureOption = False,
    folder: FolderOption = None,
    durability: DurabilityOption = "process",
    protocol: ProtocolOption = "norfab_ascii",
    capture: CaptureOption = None,
) -> None:
    """Give a job to the broker, and print its uuid; `collect` has the results."""
    options = Options(broker, keys, user or CLIENT, insecure, folder, durability, protocol, capture)
    given, named = read_arguments(args, kwargs)
    targets = read_targets(target)

    async def story() -> None:
        from specwire.runtime.norfab.client import JobError
        from specwire.runtime.norfab.client.events import ConnectionLost, Happening, JobAccepted, JobEnded

        settled: asyncio.Future[JobResult | None] = asyncio.get_running_loop().create_future()
        loss = [""]

        def hear(happening: Happening) -> None:
            if isinstance(happening, ConnectionLost):
                loss[0] = f"{happening.endpoint}: {happening.reason}"
            elif isinstance(happening, JobAccepted | JobEnded) and not settled.done():
                settled.set_result(happening.result if isinstance(happening, JobEnded) else None)

        async with client_of(options, hear) as client:
            try:
                uuid = await client.submit(
                    service,
                    task,
                    *given,
                    targets=targets,
                    timeout=timeout,
                    kwargs=named,
                    resources=resource or (),
                )
            except (ValueError, TypeError) as error:
                fail(str(error))
            sys.stdout.write(f"{dumps({'uuid': uuid}) if as_json else uuid}\n")
            sys.stdout.flush()
            try:
                ended = await asyncio.wait_for(settled, min(timeout, ANSWER_S))
            except TimeoutError:
                why = f" ({loss[0]})" if loss[0] else ""
                fail(f"no broker has taken it yet{why}; {collect_later(uuid)}", status=JOB_FAILED)
            if ended is not None and not ended.ok:
                raise JobError(ended)

    run_story(story())


@app.command(epilog=EXIT_STATUSES)
def collect(
    uuid: UuidArgument,
    timeout: TimeoutOption = 600.0,
    service: OfServiceOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    broker: BrokerOption = None,
    keys: KeysOption = None,
    user: UserOption = None,
    insecure: InsecureOption = False,
    folder: FolderOption = None,
    durability: DurabilityOption = "process",
    protocol: ProtocolOption = "norfab_ascii",
    capture: CaptureOption = None,
) -> None:
    """Wait for a job that was submitted before, and print what came of it."""
    options = Options(broker, keys, user or CLIENT, insecure, folder, durability, protocol, capture)

    async def story() -> JobResult:
        from specwire.runtime.cli.norfab_client_view import JobView
        from specwire.runtime.norfab.client.places import find_job

        found = await find_job(options.places, uuid)
        of_service = service or (found[1].job.service if found else None)
        view = JobView(f"job {uuid}", quiet=quiet)
        async with client_of(options, view.tell, place=found[0] if found else None) as client:
            try:
                waiting = client.collect(uuid, timeout, service=of_service)
                return await wait_for(client, uuid, view, waiting)
            except ValueError as error:
                fail(str(error))

    tell_result(run_story(story()), as_json=as_json)


@app.command(epilog="Exit status: 0; 2 for usage and bad input.")
def history(
    limit: Annotated[int, typer.Option(min=1, max=100_000, help="How many, the newest first.")] = 20,
    as_json: JsonOption = False,
    folder: FolderOption = None,
) -> None:
    """List the jobs that were submitted from here."""
    from specwire.runtime.cli.norfab_client_view import as_json as to_json
    from specwire.runtime.cli.norfab_client_view import print_table
    from specwire.runtime.norfab.client.places import read_history

    entries = run_story(read_history(Options(None, None, CLIENT, True, folder).places, limit))
    if as_json:
        sys.stdout.write(to_json(entries) + "\n")
    elif not entries:
        messages().print("no jobs were submitted from here")
    else:
        rows = [
            (
                entry.uuid,
                moment(entry.submitted_at),
                entry.service,
                entry.task,
                entry.target,
                entry.state,
                f"{entry.ended_at - entry.submitted_at:.2f} s" if entry.ended_at else "",
                entry.error,
            )
            for entry in entries
        ]
        print_table(("uuid", "submitted", "service", "task", "target", "state", "took", "cause"), rows, (6,))


@app.command(epilog=EXIT_STATUSES)
def delete(
    uuid: UuidArgument,
    service: OfServiceOption = None,
    timeout: TimeoutOption = ANSWER_S,
    broker: BrokerOption = None,
    keys: KeysOption = None,
    user: UserOption = None,
    insecure: InsecureOption = False,
    folder: FolderOption = None,
    protocol: ProtocolOption = "norfab_ascii",
    capture: CaptureOption = None,
) -> None:
    """Drop a job that waits, cancel one that runs, forget the results of one that has ended."""
    options = Options(broker, keys, user or CLIENT, insecure, folder, "process", protocol, capture)

    async def story() -> None:
        from specwire.runtime.norfab.client.places import find_job

        found = await find_job(options.places, uuid)
        of_service = service or (found[1].job.service if found else None)
        async with client_of(options, place=found[0] if found else None) as client:
            try:
                await client.delete(uuid, service=of_service, timeout=timeout)
            except ValueError as error:
                fail(str(error))

    run_story(story())


@app.command(epilog=EXIT_STATUSES)
def fetch(
    url: Annotated[str, typer.Argument(metavar="URL", help="nf://FOLDER/FILE", show_default=False)],
    destination: Annotated[
        Path | None,
        typer.Argument(metavar="FILE", help="Where it is to be; a folder means in it. (default: here)"),
    ] = None,
    broker: BrokerOption = None,
    keys: KeysOption = None,
    user: UserOption = None,
    insecure: InsecureOption = False,
    protocol: ProtocolOption = "norfab_ascii",
    capture: CaptureOption = None,
    as_json: JsonOption = False,
) -> None:
    """Fetch a file that the broker shares."""
    options = Options(broker, keys, user or CLIENT, insecure, None, "process", protocol, capture)

    async def story() -> Path:
        from specwire.runtime.norfab.files import FetchError

        async with client_of(options, keeping=False) as client:
            try:
                return await client.fetch(url, destination or Path())
            except FetchError as error:
                fail(str(error), status=JOB_FAILED)

    fetched = str(run_story(story()))
    sys.stdout.write(f"{dumps({'file': fetched}) if as_json else fetched}\n")
