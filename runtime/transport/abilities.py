"""What the libzmq that this Python has can do."""

from __future__ import annotations

import socket

import zmq

LOOPBACK = {"127.0.0.1": socket.AF_INET, "::1": socket.AF_INET6}


def library_versions() -> str:
    """Return the releases of libzmq and of its binding, in words."""
    return f"libzmq {zmq.zmq_version()}, pyzmq {zmq.pyzmq_version()}"


def can_encrypt() -> bool:
    """Whether CURVE is in it, and makes keys."""
    if not zmq.has("curve"):
        return False
    try:
        public, secret = zmq.curve_keypair()
    except zmq.ZMQError:
        return False
    return zmq.curve_public(secret) == public


def usable_loopbacks() -> list[str]:
    """Return the loopback addresses of this machine that a program can listen on."""
    return [address for address, family in LOOPBACK.items() if _can_listen(address, family)]


def _can_listen(address: str, family: socket.AddressFamily) -> bool:
    try:
        with socket.socket(family) as trial:
            trial.bind((address, 0))
    except OSError:
        return False
    return True
