"""What the commands about jobs have in common: arguments read, ends waited for, results told."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Coroutine
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec

from specwire.runtime.cli.console import fail
from specwire.runtime.cli.norfab_client_options import JOB_FAILED

if TYPE_CHECKING:
    from specwire.runtime.cli.norfab_client_view import JobView
    from specwire.runtime.norfab.client import JobResult, NorfabClient


def read_arguments(args: list[str] | None, kwargs: str | None) -> tuple[list[Any], dict[str, Any]]:
    """Return the arguments by place and by name; ends the command where they cannot be read."""
    given = []
    for word in args or ():
        try:
            given.append(msgspec.json.decode(word))
        except (msgspec.DecodeError, RecursionError, UnicodeError):
            given.append(word)
    try:
        return given, msgspec.json.decode(kwargs or "{}", type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
        fail(f"--kwargs is no JSON object: {error}")


def read_targets(target: list[str] | None) -> str | list[str]:
    """Return the targets; ends the command where they are none."""
    from specwire.runtime.norfab.client.orders import target_of

    wanted: str | list[str] = "all" if not target else target[0] if len(target) == 1 else target
    try:
        return target_of(wanted)
    except ValueError as error:
        fail(f"--target: {error}")


async def wait_for(
    client: NorfabClient, uuid: str, view: JobView, waiting: Coroutine[Any, Any, JobResult]
) -> JobResult:
    """Return what came of a job; who is interrupted is told how to go on."""
    from specwire.runtime.norfab.client import UnknownJobError

    try:
        return await waiting
    except asyncio.CancelledError:
        view.close()
        with suppress(UnknownJobError):  # it was interrupted before the job was on disk
            await client.look(uuid)
            sys.stderr.write(f"{collect_later(uuid)}\n")
        raise
    finally:
        view.close()


def collect_later(uuid: str) -> str:
    """Return the sentence that says how to go on."""
    return f"the job is kept; go on with: specwire norfab client collect {uuid}"


def tell_result(result: JobResult, *, as_json: bool) -> None:
    """Print what came of a job; the command fails where the job has."""
    from specwire.runtime.cli.norfab_client_view import as_json as to_json
    from specwire.runtime.cli.norfab_client_view import print_result
    from specwire.runtime.log.text import show

    if as_json:
        sys.stdout.write(to_json(result) + "\n")
    else:
        print_result(result)
    sys.stdout.flush()
    if not result.ok:
        again = not result.ended or result.state == "STALE"
        later = f"; {collect_later(result.uuid)}" if again else ""
        fail(show(result.explain()) + later, status=JOB_FAILED)


def moment(seconds: float) -> str:
    """Return a time as a person of this place reads it."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seconds))
