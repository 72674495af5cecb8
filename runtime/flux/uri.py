"""Where a broker is: ``local://PATH``, the path of its UNIX socket; FLUX_URI where nobody says."""

from __future__ import annotations

import os

from specwire.runtime.flux.errors import ECONNRESET, EINVAL, FluxError

SCHEME = "local://"
MAX_PATH_OCTETS = 107
"""Room for a path in `sockaddr_un`, without the NUL behind it."""


def local_path(uri: str | None = None) -> str:
    """Return the socket's path in `uri`, or in FLUX_URI; raises FluxError, with one sentence."""
    if uri is None:
        uri = os.environ.get("FLUX_URI")
        if not uri:
            raise FluxError(EINVAL, "no broker was named, and FLUX_URI is not set")
    if uri.startswith("ssh://"):
        raise FluxError(EINVAL, f"{uri} is on another machine, and ssh:// is not spoken here")
    path = uri.removeprefix(SCHEME)
    if path == uri or not path:
        raise FluxError(EINVAL, f"{uri!r} is not of the form {SCHEME}PATH")
    if fault := fault_in_path(path):
        raise FluxError(EINVAL, f"{uri!r} {fault}")
    return path


def fault_in_path(path: str) -> str:
    """Return why no UNIX socket can have this path; empty where one can."""
    octets = len(os.fsencode(path))
    if octets > MAX_PATH_OCTETS:
        return f"has a path of {octets} octets, and a UNIX socket's has at most {MAX_PATH_OCTETS}"
    return "has NUL in its path" if "\0" in path else ""


def explain_refusal(path: str, error: OSError) -> FluxError:
    """Return what to say where no connection came about."""
    match error:
        case FileNotFoundError():
            reason = "no such socket"
        case ConnectionRefusedError():
            reason = "the socket is there, but nobody listens on it"
        case _:
            reason = error.strerror or str(error)
    return FluxError(error.errno or EINVAL, f"there is no broker at {SCHEME}{path}: {reason}")


def explain_denial(path: str, errnum: int) -> FluxError:
    """Return what to say where the broker's authorisation octet was not 0."""
    return FluxError(errnum, f"the broker at {SCHEME}{path} denies access: {os.strerror(errnum)}")


def explain_loss(path: str, reason: str) -> FluxError:
    """Return what everything fails with that waits when a connection is lost."""
    return FluxError(ECONNRESET, f"the connection to {SCHEME}{path} is lost: {reason}")
