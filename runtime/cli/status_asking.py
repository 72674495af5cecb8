"""Status of the processes of this user: asking for it, and printing it as text."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec

from specwire.runtime.kernel.status import Distribution
from specwire.runtime.log.text import show
from specwire.runtime.transport.errors import TransportError
from specwire.runtime.transport.status_folder import Address
from specwire.runtime.transport.status_socket import NobodyListensError, ask_status, remove_stale

ANSWER_S = 5.0
ASKED_AT_ONCE = 16
MAX_ROWS = 200


class NoAnswerError(Exception):
    """A process is there and does not tell how it is; `str()` says which, and why."""


def ask_all(addresses: Sequence[Address], roles: Collection[str], type_: Any) -> list[Any]:
    """Return what each process with one of `roles` says, in the order of the addresses.

    Each answer is of `type_`, or a NoAnswerError. Sockets of dead processes are removed.
    """
    wanted = [address for address in addresses if address.role in roles]
    if not wanted:
        return []
    # Made before the threads: msgspec crashes where two threads are the first to use a nested struct.
    decoder = msgspec.json.Decoder(type_)
    with ThreadPoolExecutor(min(ASKED_AT_ONCE, len(wanted))) as threads:
        answers = threads.map(lambda address: _ask(address, decoder), wanted)
        return [answer for answer in answers if answer is not None]


def _ask(address: Address, decoder: msgspec.json.Decoder[Any]) -> Any:
    try:
        return decoder.decode(ask_status(address.path, timeout_s=ANSWER_S))
    except NobodyListensError:
        remove_stale(address.path)
        return None
    except TransportError as error:
        return NoAnswerError(f"process {address.pid} does not answer: {error}")
    except msgspec.DecodeError as error:
        return NoAnswerError(f"process {address.pid} is of another version of specwire: {error}")


def describe_status(status: msgspec.Struct) -> Iterator[str]:
    """Yield the lines of a status as text: fields, then structs, then tables."""
    yield from _describe(status, "")


def _describe(status: msgspec.Struct, indent: str) -> Iterator[str]:
    fields = {name: getattr(status, name) for name in status.__struct_fields__}
    width = max((len(name) for name in fields), default=0)
    for name, value in fields.items():
        words = name.replace("_", " ")
        if isinstance(value, Distribution):
            yield f"{indent}{words:{width}}  {sum(value.counts):,} values, {value.total:.3f} in all"
        elif isinstance(value, msgspec.Struct):
            yield f"{indent}{words}"
            yield from _describe(value, indent + "  ")
        elif value and isinstance(value, tuple | list) and isinstance(value[0], msgspec.Struct):
            yield f"{indent}{words}"
            yield from _table(value, indent + "  ")
        else:
            yield f"{indent}{words:{width}}  {_cell(value)}"


def _table(rows: Sequence[msgspec.Struct], indent: str) -> Iterator[str]:
    names = rows[0].__struct_fields__
    shown = [tuple(_cell(getattr(row, name)) for name in names) for row in rows[:MAX_ROWS]]
    lines = [tuple(name.replace("_", " ") for name in names), *shown]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        yield indent + "  ".join(f"{cell:{width}}" for cell, width in zip(line, widths, strict=True)).rstrip()
    if len(rows) > MAX_ROWS:
        yield f"{indent}and {len(rows) - MAX_ROWS:,} more"


def _cell(value: Any) -> str:
    match value:
        case bool():
            return "yes" if value else "no"
        case int():
            return f"{value:,}"
        case float():
            return f"{value:,.1f}"
        case Mapping():
            return ", ".join(f"{show(str(key))}={_cell(one)}" for key, one in value.items()) or "-"
        case tuple() | list():
            return ", ".join(map(_cell, value)) or "-"
        case _:
            return show(str(value)) or "-"
