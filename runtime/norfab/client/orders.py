"""What a caller wants done, checked before anything is made of it: names, targets, arguments."""

from __future__ import annotations

import getpass
import os
import re
import socket
from collections.abc import Mapping, Sequence
from contextlib import suppress
from math import isfinite
from typing import Any
from uuid import uuid4

import msgspec

from specwire.runtime.norfab.client.job import write_target
from specwire.runtime.norfab.client.records import JobRecord
from specwire.runtime.norfab.commands import Mmi
from specwire.runtime.norfab.names import check_service, check_uuid, read_target

_UNFIT = re.compile(r"[^A-Za-z0-9_.@-]")
MAX_NAME = 64
LONGEST_S = 7 * 86400.0


def target_of(targets: str | Sequence[str]) -> str:
    """Return ``all``, ``any``, a name, or the JSON list of names that every broker reads; raises ValueError."""
    if not isinstance(targets, str):
        names = list(targets)
        if not names:
            raise ValueError("targets: an empty list means no worker")
        targets = write_target(names)
    wanted = read_target(targets)
    return wanted.kind if wanted.kind != "names" else write_target(wanted.names)


def make_job(
    service: str,
    task: str,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    *,
    targets: str | Sequence[str],
    resources: Sequence[str],
    timeout_s: float,
    uuid: str | None,
    now: float,
) -> JobRecord:
    """Return the record of a new job.

    Raises:
        ValueError: a name, the targets or the timeout are invalid.
        TypeError: an argument cannot be encoded as JSON.
    """
    check_timeout(timeout_s)
    said: dict[str, Any] = {"task": task, "kwargs": dict(kwargs), "args": list(args), "timeout": timeout_s}
    if resources:
        said["resources"] = list(resources)
    body = _write(said)
    return JobRecord(
        check_uuid(uuid or make_uuid(now)),
        check_service(service),
        task,
        target_of(targets),
        body,
        now,
        now + timeout_s,
    )


def check_body(body: bytes, limit: int) -> None:
    """Raise ValueError if the body of a job has more than `limit` octets."""
    if len(body) > limit:
        raise ValueError(f"a job has up to {limit} octets, and this has {len(body)}")


def _write(said: Mapping[str, Any]) -> bytes:
    try:
        return msgspec.json.encode(said)
    except UnicodeEncodeError as error:  # as a shell hands over octets that are no UTF-8
        raise ValueError(f"{error.object[:80]!r} cannot be sent: it is no text in UTF-8") from None


def make_uuid(now: float) -> str:
    """Return a uuid for a job that is made `now`: of version 7, so the jobs of a client are neighbours in its store."""
    begun = int(now * 1000) % (1 << 48) << 80
    chance = int.from_bytes(os.urandom(10)) & ~(0xF << 76 | 0x3 << 62)
    return f"{begun | 0x7 << 76 | 0x2 << 62 | chance:032x}"


def make_inquiry(
    uuid: str, service: str | None, targets: str | Sequence[str], now: float, deadline: float
) -> JobRecord:
    """Return the record of a job that was submitted elsewhere; raises ValueError."""
    return JobRecord(
        check_uuid(uuid), check_service(service or ""), "", target_of(targets), b"", now, deadline
    )


def make_request(
    service: str, task: str, args: Sequence[Any], kwargs: Mapping[str, Any], target: str | Sequence[str]
) -> Mmi:
    """Return a request to a service of the broker; raises as `make_job` does."""
    body = _write({"task": task, "kwargs": dict(kwargs), "args": list(args)})
    return Mmi(uuid4().hex, body, check_service(service), target_of(target or "all"))


def check_timeout(timeout_s: float) -> None:
    """Raise ValueError where a wait is none."""
    if not (isfinite(timeout_s) and 0 < timeout_s <= LONGEST_S):
        raise ValueError(f"a job waits for more than 0 and at most {LONGEST_S:g} seconds, not {timeout_s}")


def client_name(name: str | None) -> str:
    """Return the name that a broker lists; without one of its own a client is called by who runs it where.

    Raises:
        ValueError: it has other characters than letters, digits and ``_.@-``, or more than `MAX_NAME`.
    """
    if name is None:
        user = "client"
        with suppress(OSError, KeyError):
            user = getpass.getuser()
        return _UNFIT.sub("_", f"{user}@{socket.gethostname()}.{os.getpid()}")[:MAX_NAME]
    if not name or len(name) > MAX_NAME or _UNFIT.search(name):
        raise ValueError(
            f"a client has a name of 1 to {MAX_NAME} letters, digits and _.@-, not {name[:80]!r}"
        )
    return name
