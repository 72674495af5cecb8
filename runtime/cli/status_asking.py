"""What the processes of this user that can be asked for their status say."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec

from specwire.runtime.transport.errors import TransportError
from specwire.runtime.transport.status_folder import Address
from specwire.runtime.transport.status_socket import NobodyListensError, ask_status, remove_stale

ANSWER_S = 5.0
ASKED_AT_ONCE = 16


class NoAnswerError(Exception):
    """A process is there and does not tell how it is; `str()` says which, and why."""


def ask_all(addresses: Sequence[Address], roles: Collection[str], type_: Any) -> list[Any]:
    """Return what each process with one of `roles` says, in the order of the addresses.

    Each answer is of `type_`, or a NoAnswerError. Sockets of dead processes are removed.
    """
    wanted = [address for address in addresses if address.role in roles]
    if not wanted:
        return []
    with ThreadPoolExecutor(min(ASKED_AT_ONCE, len(wanted))) as threads:
        answers = threads.map(lambda address: _ask(address, type_), wanted)
        return [answer for answer in answers if answer is not None]


def _ask(address: Address, type_: Any) -> Any:
    try:
        return msgspec.json.decode(ask_status(address.path, timeout_s=ANSWER_S), type=type_)
    except NobodyListensError:
        remove_stale(address.path)
        return None
    except TransportError as error:
        return NoAnswerError(f"process {address.pid} does not answer: {error}")
    except msgspec.DecodeError as error:
        return NoAnswerError(f"process {address.pid} is of another version of specwire: {error}")
