"""Options of `specwire capture proxy` for peers that use CURVE: the keys without which nothing can be read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

if TYPE_CHECKING:
    from specwire.runtime.capture.proxy import ProxyWatch
    from specwire.runtime.transport.relay import Between

CurveOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Peers use CURVE: the secret key (.key_secret) that clients expect, the server's own.",
        show_default=False,
    ),
]

ClientKeysOption = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        help="With --curve: the public keys (*.key) of the clients that are let in.",
        show_default=False,
    ),
]

ServerKeyOption = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="With --curve: the public key of the server.", show_default=False),
]

OwnKeyOption = Annotated[
    Path | None,
    typer.Option(
        "--as",
        metavar="FILE",
        help="With --curve: the secret key (.key_secret) by which the server lets the proxy in.",
        show_default=False,
    ),
]


class Keys(NamedTuple):
    """The four options, as they were given."""

    curve: Path | None
    client_keys: Path | None
    server_key: Path | None
    own: Path | None


Make = Callable[[str, str, "ProxyWatch", int], "Between"]
"""Makes what stands between the peers: where it listens, the server, what records, connections at most."""


def choose_between(keys: Keys, listen: str, *, insecure: bool) -> Make:
    """Return what makes a proxy of octets, or one with keys.

    Raises:
        ValueError: an option is missing, or a key cannot be used.
        ExposureError: others could reach the server through the proxy without proving anything.
    """
    from specwire.runtime.transport.relay import Relay
    from specwire.runtime.transport.security import NULL, refuse_exposure

    if any(keys):
        return _with_keys(keys)
    refuse_exposure(listen, NULL, insecure=insecure)
    return lambda endpoint, target, watch, most: Relay(endpoint, target, watch, max_connections=most)


def _with_keys(keys: Keys) -> Make:
    from specwire.runtime.capture.curve_proxy import CurveProxy
    from specwire.runtime.transport.keys import KeyFileError, load_keys, load_public_key
    from specwire.runtime.transport.security import CurveClient, CurveServer

    curve, client_keys, server_key, own = keys
    if curve is None or client_keys is None or server_key is None or own is None:
        names = ("--curve", "--client-keys", "--server-key", "--as")
        missing = [name for name, value in zip(names, keys, strict=True) if value is None]
        raise ValueError(f"for peers that use CURVE {' and '.join(missing)} must be given as well")
    try:
        front = CurveServer(load_keys(curve))
        back = CurveClient(load_keys(own), load_public_key(server_key))
        files = sorted(client_keys.glob("*.key"))
        if not files:
            raise ValueError(f"--client-keys: {client_keys} holds no public keys (no *.key files)")
        clients = {load_public_key(file): file.stem for file in files}
    except KeyFileError as error:
        raise ValueError(str(error)) from None
    return lambda endpoint, target, watch, most: CurveProxy(
        endpoint, target, front, back, clients, watch.begin, max_connections=most
    )
