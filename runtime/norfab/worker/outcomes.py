"""Conversion of what a task returns or raises to an `Outcome`. It always succeeds."""

from __future__ import annotations

import os
import traceback
from collections.abc import Sequence
from typing import Any

import msgspec

from specwire.runtime.norfab.worker.arguments import ArgumentsError
from specwire.runtime.norfab.worker.bodies import NULL, Outcome, failure
from specwire.runtime.norfab.worker.handle import JobCancelledError, Result

MAX_TRACE = 8_000
MAX_REASON = 4_000
_SHOWN_FRAMES = 20


def of_value(value: Any, resources: Sequence[str]) -> Outcome:
    """Return the outcome of a task that returned `value`."""
    if value is None:
        return Outcome(resources=tuple(map(str, resources)))
    said = value if isinstance(value, Result) else Result(result=value)
    try:
        return Outcome(
            result=_as_json(said.result),
            failed=bool(said.failed),
            errors=tuple(map(str, said.errors)),
            messages=tuple(map(str, said.messages)),
            resources=tuple(map(str, resources if said.resources is None else said.resources)),
            status=str(said.status),
            diff=NULL if said.diff is None else _as_json(said.diff),
            dry_run=bool(said.dry_run),
        )
    except BaseException as error:  # noqa: BLE001 - a model of the plugin's may raise anything
        return failure(f"what the task returned cannot be sent as JSON: {_words(error)}", "error")


def _as_json(value: Any) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(value, enc_hook=_plain))


def _plain(value: Any) -> Any:
    """Convert a value that msgspec does not know."""
    dump = getattr(value, "model_dump", None)
    if dump is not None:
        return dump(mode="json")
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    raise NotImplementedError(f"a value of type {type(value).__name__} is no JSON")


def of_error(error: BaseException) -> Outcome:
    """Return the outcome of a task that raised `error`."""
    if isinstance(error, ArgumentsError):
        return failure(f"wrong arguments: {_words(error, bare=True)}")
    if isinstance(error, JobCancelledError):
        return failure(f"cancelled: {_words(error, bare=True)}")
    if isinstance(error, SystemExit):
        return failure(f"the task called sys.exit({error.code!r})", "error")
    return Outcome(failed=True, errors=(_words(error),), messages=_trace(error), status="error")


def _words(error: BaseException, *, bare: bool = False) -> str:
    try:
        text = str(error)
    except BaseException:  # noqa: BLE001 - an error of the plugin's may raise anything
        text = "(its text cannot be had)"
    text = text.encode("utf-8", "backslashreplace").decode()[:MAX_REASON]
    return text if bare else f"{type(error).__name__}: {text}" if text else type(error).__name__


def _trace(error: BaseException) -> tuple[str, ...]:
    try:
        lines = traceback.format_exception(error, limit=-_SHOWN_FRAMES)
        text = "".join(lines)[-MAX_TRACE:]
        return (text.encode("utf-8", "backslashreplace").decode(),)
    except BaseException:  # noqa: BLE001 - as above
        return ()
