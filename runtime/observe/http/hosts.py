"""Which ``Host`` a request may name.

A page somewhere on the web can have the reader's browser ask this machine, under a name of its own that it lets point here (DNS
rebinding), and would read the answer. So a server on loopback answers only what such a page cannot have: an address, and
``localhost``. One that others are to reach is asked under whichever names it has.
"""

from __future__ import annotations

import ipaddress

from specwire.runtime.observe.place import is_loopback


def is_known_host(header: str, own: str) -> bool:
    """Whether a request that says ``Host: header`` is answered by a server that listens at the host `own`."""
    host = _without_port(header).lower().rstrip(".")
    if host == "localhost" or not is_loopback(own):
        return True
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _without_port(header: str) -> str:
    if header.startswith("["):
        return header[1:].partition("]")[0]
    return header.partition(":")[0]
