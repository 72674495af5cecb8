"""ZeroMQ, CURVE, loopback, the ports that servers listen on where nothing else is said, and the folder for status."""

from __future__ import annotations

import os
from collections.abc import Iterator

from specwire.runtime.doctor.finding import Finding, State
from specwire.runtime.transport.abilities import can_encrypt, library_versions, usable_loopbacks
from specwire.runtime.transport.errors import TransportError
from specwire.runtime.transport.port import require_free
from specwire.runtime.transport.status_folder import locate_status_folder, open_status_folder

PORTS = {"filemq serve": 5670, "norfab broker": 5555}
"""The port of each server that has one where --endpoint is not given."""

LONGEST_SOCKET_PATH = 107
"""Octets that a path of a socket may have on Linux, the NUL left out."""


def examine_sockets() -> Iterator[Finding]:
    """Yield what was found about everything that peers need to talk to each other."""
    yield Finding("zeromq", State.OK, library_versions())
    yield _examine_curve()
    yield _examine_loopback()
    yield _examine_ports()
    yield _examine_status_folder()


def _examine_curve() -> Finding:
    if can_encrypt():
        return Finding("curve", State.OK, "keys can be made, connections encrypted")
    return Finding(
        "curve",
        State.ABSENT,
        "this libzmq is built without CURVE: peers talk on this machine only",
        "pip install --force-reinstall pyzmq (its wheels have CURVE)",
    )


def _examine_loopback() -> Finding:
    usable = usable_loopbacks()
    if "127.0.0.1" in usable:
        return Finding("loopback", State.OK, " and ".join(usable))
    return Finding(
        "loopback", State.WRONG, "nothing can listen on 127.0.0.1", "bring the loopback up: ip link set lo up"
    )


def _examine_ports() -> Finding:
    taken = []
    for server, port in PORTS.items():
        try:
            require_free(f"tcp://127.0.0.1:{port}")
        except TransportError:
            taken.append(f"{port} ({server})")
    if not taken:
        return Finding("ports", State.OK, f"{' and '.join(map(str, PORTS.values()))} are free on 127.0.0.1")
    return Finding(
        "ports",
        State.ABSENT,
        f"somebody listens on {', '.join(taken)} already",
        "give the server another port: --endpoint tcp://127.0.0.1:PORT",
    )


def _examine_status_folder() -> Finding:
    folder = locate_status_folder(os.environ)
    try:
        open_status_folder(folder)
    except (TransportError, OSError) as error:
        return Finding("status", State.WRONG, f"servers cannot be asked for their status: {error}")
    if len(os.fsencode(folder / "filemq-server-4194304.sock")) > LONGEST_SOCKET_PATH:
        return Finding(
            "status",
            State.WRONG,
            f"{folder} is too long for the path of a socket",
            "let XDG_RUNTIME_DIR, or TMPDIR, lead to a shorter folder",
        )
    return Finding("status", State.OK, f"servers answer in {folder}")
