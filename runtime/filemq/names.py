"""Virtual names: what a file and a subscription may be called, and which subscription covers which file.

FILEMQ v2 names a file by its full virtual path, such as ``/photos/2013/a.jpg``, in a string of at most 255
octets. The specification says nothing about hostile names, so the rule is ours: a name is a ``/`` before each
of one or more components, none of which is empty, ``.`` or ``..``. Spaces and any UTF-8 are fine. A name that
breaks the rule is refused and reported, never repaired: a repaired name could be another file's.

A subscription is a name too, or ``/`` for everything, and covers what is equal to it or below it: ``/foo``
covers ``/foo`` and ``/foo/bar`` and not ``/foobar``.
"""

from __future__ import annotations

from collections.abc import Container

MAX_NAME_OCTETS = 255
"""A string's length is one octet (FILEMQ v2, rule `size`)."""

LONGEST_NAME_OCTETS = 4095
"""What a name may have where lengths are four octets: a path of the system's longest has no more."""

MAX_CACHED_NAME_OCTETS = MAX_NAME_OCTETS - len("=") - 40
"""What is left for the name in a cache entry, ``name=digest`` with the 40 digits of a SHA-1."""

RESERVED = ".specwire-inbox"
"""The folder in which an inbox keeps its unfinished files and its journal; no file may have this name."""

UNFIT = frozenset({"", ".", "..", RESERVED})
"""No component of a file's name may be one of these."""

TRASH = "trash"
"""The folder below `RESERVED` for files that an update or a deletion took out of an inbox."""


def fault_in_name(name: str, longest_octets: int = MAX_NAME_OCTETS) -> str | None:
    """Return why `name` cannot be the name of a file, None where it can."""
    try:
        octets = len(name.encode())
    except UnicodeEncodeError:
        return "is not valid UTF-8"
    if not name.startswith("/"):
        return "is not a full virtual path: it does not begin with '/'"
    if octets > longest_octets:
        return f"is {octets} octets long, and {longest_octets} are allowed"
    if "\0" in name:
        return "contains a NUL"
    components = split_name(name)
    if UNFIT.isdisjoint(components):
        return None
    if "" in components:
        return "has an empty component"
    if "." in components or ".." in components:
        return "has a component '.' or '..'"
    return f"is reserved: '{RESERVED}' holds the inbox's own files"


def fault_in_path(path: str, longest_octets: int = MAX_NAME_OCTETS) -> str | None:
    """Return why nobody can subscribe to `path` (as `normalise_path` returns it), None where one can."""
    return None if path == "/" else fault_in_name(path, longest_octets)


def as_utf8(text: str) -> str:
    """Return `text` with each octet that is not UTF-8 escaped: names of the system may have such, documents may not."""
    return text.encode(errors="backslashreplace").decode()


def normalise_path(path: str) -> str:
    """Return a subscription's path without a slash at its end."""
    return path[:-1] if path.endswith("/") and path != "/" else path


def covers(path: str, name: str) -> bool:
    """Tell whether a subscription to `path` (normalised) includes the file `name`."""
    return path == "/" or name == path or (name.startswith(path) and name[len(path)] == "/")


def is_below(name: str, places: Container[str]) -> bool:
    """Tell whether `name` is one of these places, or below one."""
    if name in places or "/" in places:
        return True
    end = name.find("/", 1)
    while end > 0:
        if name[:end] in places:
            return True
        end = name.find("/", end + 1)
    return False


def split_name(name: str) -> list[str]:
    """Return the components of a full virtual path."""
    return name[1:].split("/")


def relative_name(path: str, name: str) -> str:
    """Return how a cache of `path` names the file `name`: relative to the path where that is shorter."""
    if name == path:
        return name
    return name[1:] if path == "/" else name[len(path) + 1 :]


def absolute_name(path: str, cached: str) -> str:
    """Return the full virtual path of a name in a cache of `path`."""
    if cached.startswith("/"):
        return cached
    return f"/{cached}" if path == "/" else f"{path}/{cached}"


def cut_reason(reason: str) -> str:
    """Return as much of `reason` as fits the string of an error command, whole characters only."""
    return reason.encode(errors="replace")[:MAX_NAME_OCTETS].decode(errors="ignore")
