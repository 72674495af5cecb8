"""Error numbers of responses, and the exception with which a service answers one.

The numbers are those of Linux, whatever the machine is: they go over the wire. Those that the grammar declares
come from the generated package.
"""

from __future__ import annotations

from specwire.generated.flux import EEXIST, EHOSTUNREACH, ENODATA, ENOENT, ENOSYS, EPROTO

__all__ = [
    "EAGAIN",
    "ECANCELED",
    "ECONNRESET",
    "EEXIST",
    "EHOSTUNREACH",
    "EINVAL",
    "EIO",
    "ENOBUFS",
    "ENODATA",
    "ENOENT",
    "ENOSPC",
    "ENOSYS",
    "EOVERFLOW",
    "EPERM",
    "EPROTO",
    "ETIMEDOUT",
    "NAMES",
    "FluxError",
    "describe",
]

EPERM = 1
EIO = 5
EAGAIN = 11
EINVAL = 22
ENOSPC = 28
EOVERFLOW = 75
ECONNRESET = 104
ENOBUFS = 105
ETIMEDOUT = 110
ECANCELED = 125

NAMES = {
    EPERM: ("EPERM", "Operation not permitted"),
    ENOENT: ("ENOENT", "No such file or directory"),
    EIO: ("EIO", "Input/output error"),
    EAGAIN: ("EAGAIN", "Resource temporarily unavailable"),
    EEXIST: ("EEXIST", "File exists"),
    EINVAL: ("EINVAL", "Invalid argument"),
    ENOSPC: ("ENOSPC", "No space left on device"),
    ENOSYS: ("ENOSYS", "Function not implemented"),
    ENODATA: ("ENODATA", "No data available"),
    EPROTO: ("EPROTO", "Protocol error"),
    EOVERFLOW: ("EOVERFLOW", "Value too large for defined data type"),
    ECONNRESET: ("ECONNRESET", "Connection reset by peer"),
    ENOBUFS: ("ENOBUFS", "No buffer space available"),
    ETIMEDOUT: ("ETIMEDOUT", "Connection timed out"),
    EHOSTUNREACH: ("EHOSTUNREACH", "No route to host"),
    ECANCELED: ("ECANCELED", "Operation canceled"),
}
"""Name and text of each number, as the C library's strerror tells it."""


def describe(errnum: int) -> str:
    """Return the text of an error number."""
    return NAMES[errnum][1] if errnum in NAMES else f"Unknown error {errnum}"


class FluxError(Exception):
    """A response with an error number.

    Attributes:
        errnum: the number on the wire, not 0.
        text: what the response says of it beyond the number; empty where it says nothing.
    """

    def __init__(self, errnum: int, text: str = "") -> None:
        super().__init__(errnum, text)
        self.errnum = errnum
        self.text = text

    @property
    def name(self) -> str:
        """The number's name; the number itself where it has none here."""
        return NAMES[self.errnum][0] if self.errnum in NAMES else str(self.errnum)

    def __str__(self) -> str:
        return self.text or describe(self.errnum)
