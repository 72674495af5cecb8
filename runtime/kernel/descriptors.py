"""Limit of open files (RLIMIT_NOFILE), which bounds the connections of a server."""

from __future__ import annotations

import resource
from collections.abc import Callable

LOW_DESCRIPTOR_LIMIT = 4096
"""A server with a lower limit logs it."""


def descriptor_limit() -> int:
    """Return the soft limit; `resource.RLIM_INFINITY` means no limit."""
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def raise_descriptor_limit(warn: Callable[[str], None] | None = None) -> None:
    """Raise the soft limit of this process to the hard one; call `warn` if it is still low.

    Every server calls this at its start. Its child processes inherit the limit.
    """
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (ValueError, OSError) as error:
        # A sandbox may forbid it; the warning below then states the unchanged limit.
        reason = f" ({error})"
    else:
        reason = ""
    limit = descriptor_limit()
    if warn is not None and limit != resource.RLIM_INFINITY and limit < LOW_DESCRIPTOR_LIMIT:
        warn(
            f"this process may use {limit:,} descriptors{reason}, and each connection takes one: "
            "raise the limit of open files (ulimit -n)"
        )
