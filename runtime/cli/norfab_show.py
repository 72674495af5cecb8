"""`specwire norfab show`: how a broker is, and who works for it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from specwire.runtime.cli.console import fail, messages
from specwire.runtime.cli.norfab_client_options import (
    ADMIN,
    ANSWER_S,
    JOB_FAILED,
    BrokerOption,
    JsonOption,
    Options,
    TimeoutOption,
    UserOption,
    client_of,
    run_story,
)
from specwire.runtime.cli.norfab_options import InsecureOption, KeysOption

app = typer.Typer(help="Show how a broker is, and who works for it.", no_args_is_help=True)
EPILOG = "Exit status: 0; 1 when the broker does not answer, or refuses; 2 for usage."

ServiceOption = Annotated[
    str | None, typer.Option("--service", help="Only of this service.", show_default=False)
]


@app.command(epilog=EPILOG)
def workers(
    service: ServiceOption = None,
    as_json: JsonOption = False,
    timeout: TimeoutOption = ANSWER_S,
    broker: BrokerOption = None,
    keys: KeysOption = None,
    user: UserOption = None,
    insecure: InsecureOption = False,
) -> None:
    """List the workers that are registered."""
    rows = ask(Options(broker, keys, user or ADMIN, insecure), "show_workers", timeout, service=service)
    rows = [row for row in records(rows) if row.get("name")]
    columns = ("name", "service", "status", "holdtime", "alive (s)", "jobs", "queued", "resources")
    tell(rows, columns, as_json=as_json, nothing="no worker is registered", right=(3, 4, 5, 6))


@app.command(epilog=EPILOG)
def clients(
    as_json: JsonOption = False,
    timeout: TimeoutOption = ANSWER_S,
    broker: BrokerOption = None,
    keys: KeysOption = None,
    user: UserOption = None,
    insecure: InsecureOption = False,
) -> None:
    """List the clients that were heard."""
    rows = ask(Options(broker, keys, user or ADMIN, insecure), "show_clients", timeout)
    columns = ("name", "user", "jobs", "posts", "messages", "silent (s)")
    tell(records(rows), columns, as_json=as_json, nothing="no client was heard", right=(2, 3, 4, 5))


@app.command(epilog=EPILOG)
def services(
    as_json: JsonOption = False,
    timeout: TimeoutOption = ANSWER_S,
    broker: BrokerOption = None,
    keys: KeysOption = None,
    user: UserOption = None,
    insecure: InsecureOption = False,
) -> None:
    """List the services, with their workers and the jobs that wait."""
    rows = ask(Options(broker, keys, user or ADMIN, insecure), "show_services", timeout)
    columns = ("name", "workers", "waiting", "jobs")
    tell(records(rows), columns, as_json=as_json, nothing="no service is offered", right=(2, 3))


@app.command(epilog=EPILOG)
def jobs(
    service: ServiceOption = None,
    state: Annotated[str, typer.Option(help="open, ended or all.")] = "open",
    limit: Annotated[int, typer.Option(min=1, max=1000, help="How many, the newest first.")] = 100,
    as_json: JsonOption = False,
    timeout: TimeoutOption = ANSWER_S,
    broker: BrokerOption = None,
    keys: KeysOption = None,
    user: UserOption = None,
    insecure: InsecureOption = False,
) -> None:
    """List the jobs that the broker has."""
    options = Options(broker, keys, user or ADMIN, insecure)
    if state not in ("open", "ended", "all"):
        fail(f"--state {state}: open, ended or all is wanted")
    rows = ask(options, "show_jobs", timeout, service=service, state=state, limit=limit)
    columns = ("uuid", "service", "task", "user", "target", "state", "workers", "answered", "age (s)")
    tell(records(rows), columns, as_json=as_json, nothing="there are no such jobs", right=(8,))


@app.command(epilog=EPILOG)
def resources(
    service: ServiceOption = None,
    as_json: JsonOption = False,
    timeout: TimeoutOption = ANSWER_S,
    broker: BrokerOption = None,
    keys: KeysOption = None,
    user: UserOption = None,
    insecure: InsecureOption = False,
) -> None:
    """List what is managed, and by which workers."""
    rows = ask(Options(broker, keys, user or ADMIN, insecure), "show_resources", timeout, service=service)
    tell(
        records(rows),
        ("resource", "service", "workers"),
        as_json=as_json,
        nothing="no worker manages anything",
    )


@app.command(epilog=EPILOG)
def broker(
    as_json: JsonOption = False,
    timeout: TimeoutOption = ANSWER_S,
    at: BrokerOption = None,
    keys: KeysOption = None,
    user: UserOption = None,
    insecure: InsecureOption = False,
) -> None:
    """Show how the broker is."""
    from specwire.runtime.cli.norfab_client_view import as_json as to_json
    from specwire.runtime.cli.norfab_client_view import describe, print_table

    told = ask(Options(at, keys, user or ADMIN, insecure), "show_broker", timeout)
    if not isinstance(told, dict):
        fail("the broker's answer is none", status=JOB_FAILED)
    if as_json:
        sys.stdout.write(to_json(told) + "\n")
    else:
        print_table(("what", "value"), [(str(name), describe(value)) for name, value in told.items()])


# --- what they have in common


def ask(options: Options, task: str, timeout: float, **arguments: Any) -> Any:
    """Return what the broker's management says."""

    async def story() -> Any:
        given = {name: value for name, value in arguments.items() if value is not None}
        async with client_of(options, keeping=False) as client:
            return await client.manage("mmi.service.broker", task, timeout=timeout, **given)

    return run_story(story())


def records(rows: Any) -> list[dict[str, Any]]:
    """Return the rows of an answer."""
    if not isinstance(rows, list):
        fail("the broker's answer is no list", status=JOB_FAILED)
    return [row for row in rows if isinstance(row, dict)]


def tell(
    rows: list[dict[str, Any]],
    columns: Sequence[str],
    *,
    as_json: bool,
    nothing: str,
    right: Sequence[int] = (),
) -> None:
    """Print the rows."""
    from specwire.runtime.cli.norfab_client_view import as_json as to_json
    from specwire.runtime.cli.norfab_client_view import print_table

    if as_json:
        sys.stdout.write(to_json(rows) + "\n")
    elif rows:
        print_table(columns, [[cell(row.get(column)) for column in columns] for row in rows], right)
    else:
        messages().print(nothing)


def cell(value: Any) -> str:
    """Return a value as it stands in a table."""
    from specwire.runtime.cli.norfab_client_view import describe

    if value is None:
        return ""
    if isinstance(value, list):
        return " ".join(describe(item) for item in value)
    return describe(value)
