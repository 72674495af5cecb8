"""Resources of the machine: descriptors, disk space, memory, and a host name that resolves."""

from __future__ import annotations

import os
import resource
import shutil
import socket
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

from specwire.runtime.doctor.finding import Finding, State
from specwire.runtime.kernel.service import LOW_DESCRIPTOR_LIMIT

FREE_OCTETS = 2 << 30
"""Space that a capture and Spark's shuffles fill in no time."""

NAME_S = 5.0
"""Time for the name of this machine to be looked up, in seconds."""


def examine_resources(folder: Path) -> Iterator[Finding]:
    """Yield what was found; `folder` is where the user works."""
    yield _examine_descriptors()
    yield _examine_disk(folder)
    yield _examine_memory()
    yield _examine_name()


def _examine_descriptors() -> Finding:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    found = f"{_count(soft)} for a process, {_count(hard)} at most"
    if hard != resource.RLIM_INFINITY and hard < LOW_DESCRIPTOR_LIMIT:
        return Finding(
            "descriptors",
            State.ABSENT,
            f"{found}: few for a server of many clients",
            "let the administrator raise nofile in limits.conf, or LimitNOFILE of the unit",
        )
    return Finding("descriptors", State.OK, found)


def _examine_disk(folder: Path) -> Finding:
    places = {"here": folder, "for temporary files": Path(tempfile.gettempdir())}
    free = {words: shutil.disk_usage(place).free for words, place in places.items()}
    found = ", ".join(f"{octets / (1 << 30):,.1f} GiB free {words}" for words, octets in free.items())
    closed = [words for words, place in places.items() if not os.access(place, os.W_OK)]
    if closed:
        return Finding(
            "disk", State.WRONG, f"no file can be written {closed[0]}", "work in a folder of your own"
        )
    if min(free.values()) < FREE_OCTETS:
        return Finding(
            "disk", State.ABSENT, found, "make space, or let TMPDIR and --out lead to another disk"
        )
    return Finding("disk", State.OK, found)


def _examine_memory() -> Finding:
    octets = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    found = f"{octets / (1 << 30):,.1f} GiB, {_processors()} processors"
    return Finding("memory", State.OK, found)


def _processors() -> int:
    """Return how many this process may use; where the system does not say, how many there are."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _examine_name() -> Finding:
    """Spark's Java process binds to the address of the machine's own name, and stops where there is none."""
    name = socket.gethostname()
    known = threading.Event()
    # A thread that is not waited for: where nobody answers, the resolver tries for half a minute.
    threading.Thread(target=_look_up, args=(name, known), daemon=True).start()
    if known.wait(NAME_S):
        return Finding("hostname", State.OK, "the name of this machine has an address")
    return Finding(
        "hostname",
        State.ABSENT,
        "the name of this machine has no address: Spark may not start",
        "export SPARK_LOCAL_IP=127.0.0.1, or add the name to /etc/hosts",
    )


def _look_up(name: str, known: threading.Event) -> None:
    try:
        socket.getaddrinfo(name, None)
    except (OSError, UnicodeError):
        return
    known.set()


def _count(limit: int) -> str:
    return "any number" if limit == resource.RLIM_INFINITY else f"{limit:,}"
