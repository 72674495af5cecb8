"""Limit of open files (RLIMIT_NOFILE), which bounds the connections of a server."""

from __future__ import annotations

import resource
from collections.abc import Callable

ENOUGH = 4096
"""A server with a lower limit says so in its log."""


def descriptor_limit() -> int:
    """Return the soft limit of descriptors; `resource.RLIM_INFINITY` means no limit."""
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def raise_descriptor_limit(tell: Callable[[str], None] | None = None) -> None:
    """Raise the soft limit of this process to the hard one; call `tell` if that is below `ENOUGH`.

    Every server calls this at its start. Programs that it starts inherit the limit.
    """
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (ValueError, OSError) as error:
        # A sandbox may forbid it; the limit in force is reported below.
        reason = f" ({error})"
    else:
        reason = ""
    limit = descriptor_limit()
    if tell is not None and limit != resource.RLIM_INFINITY and limit < ENOUGH:
        tell(f"this process may have {limit:,} descriptors{reason}, one for each connection: see ulimit -n")
