"""What `specwire config check` looks at beyond kinds and bounds: values that are none, and files that cannot be used.

A server finds the same when it starts; here it is told for every key of a file, with its line, before that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from specwire.runtime.configuration.faults import Fault
from specwire.runtime.configuration.reading import Found
from specwire.runtime.configuration.settings import Section

Check = Callable[[Any], object]
"""Raises ValueError where a value cannot be used; its sentence says why."""


def find_faults(section: Section, found: Mapping[str, Found]) -> Iterator[Fault]:
    """Yield a fault for each value of a section that its server would refuse."""
    for key, each in found.items():
        check = CHECKS.get((section.name, key)) or EVERYWHERE.get(key)
        setting = section.find(key)
        if check is None or setting is None:
            continue
        several = each.value if setting.is_list else [each.value]
        for value in several:
            try:
                check(value)
            except (ValueError, _key_file_error()) as error:
                keys = (*section.keys, key)
                yield Fault(keys, f"{'.'.join(keys)}: {error}", each.variable)


def _key_file_error() -> type[Exception]:
    from specwire.runtime.transport.keys import KeyFileError

    return KeyFileError


def _listening(endpoint: str) -> None:
    _judge(endpoint, listening=True)


def _connecting(endpoint: str) -> None:
    _judge(endpoint, listening=False)


def _judge(endpoint: str, *, listening: bool) -> None:
    from specwire.runtime.transport.endpoint import fault_in_endpoint

    if fault := fault_in_endpoint(endpoint, listening=listening):
        raise ValueError(f"{endpoint!r} {fault}")


def _published(folder: str) -> None:
    from specwire.runtime.cli.filemq_serve import read_publication

    read_publication(folder, alone=False)


def _folder(path: Path) -> None:
    if path.exists() and not path.is_dir():
        raise ValueError(f"{path} is not a folder")


def _file(path: Path) -> None:
    if not path.is_file():
        raise ValueError(f"{path} is not a file")


def _age(text: str) -> None:
    from specwire.runtime.capture.amounts import parse_age

    parse_age(text)


def _size(text: str) -> None:
    from specwire.runtime.capture.amounts import parse_size

    parse_size(text)


def _payload(text: str) -> None:
    from specwire.runtime.capture.policy import parse_payload

    parse_payload(text)


def _filemq_dialect(name: str) -> None:
    from specwire.runtime.filemq.dialects import find_dialect

    find_dialect(name)


def _flux_wire(name: str) -> None:
    from specwire.runtime.flux.wires import find_wire

    find_wire(name, letter=False)


def _secret_key(file: Path) -> None:
    from specwire.runtime.transport.keys import load_keys

    load_keys(file)


def _server_key(text: str) -> None:
    from specwire.runtime.filemq.clients_file import read_key

    read_key(text, Path())


def _clients(file: Path) -> None:
    from specwire.runtime.filemq.clients_file import load_clients

    load_clients(file)


def _passwords(file: Path) -> None:
    from specwire.runtime.filemq.clients_file import load_passwords

    load_passwords(file)


def _access(file: Path) -> None:
    from specwire.runtime.norfab.security.tablefile import load_table

    load_table(file)


def _limit(word: str) -> None:
    from specwire.runtime.cli.norfab_limits import read_settings

    read_settings([word], keepalive_s=1.0)


def _timer(word: str) -> None:
    from specwire.runtime.cli.flux_options import read_timers

    read_timers([word])


def _place(text: str) -> None:
    from specwire.runtime.observe.place import read_place

    read_place(text, anywhere=True)  # whether others may reach it is another key's part


EVERYWHERE: Mapping[str, Check] = {
    "capture": _folder,
    "capture-keep": _age,
    "capture-max": _size,
    "capture-payload": _payload,
    "capture-free": _size,
    "timer": _timer,
    "listen": _listening,
    "to": _connecting,
    "metrics": _place,
    "metrics-password-file": _file,
}
"""By key, in whatever section it is."""

CHECKS: Mapping[tuple[str, str], Check] = {
    ("filemq.serve", "folders"): _published,
    ("filemq.serve", "endpoint"): _listening,
    ("filemq.serve", "protocol"): _filemq_dialect,
    ("filemq.serve", "curve"): _secret_key,
    ("filemq.serve", "clients"): _clients,
    ("filemq.serve", "plain"): _passwords,
    ("filemq.serve", "digests"): _folder,
    ("filemq.subscribe", "server"): _connecting,
    ("filemq.subscribe", "inbox"): _folder,
    ("filemq.subscribe", "protocol"): _filemq_dialect,
    ("filemq.subscribe", "curve"): _secret_key,
    ("filemq.subscribe", "server-key"): _server_key,
    ("filemq.subscribe", "password-file"): _file,
    ("flux.broker", "protocol"): _flux_wire,
    ("flux.start", "protocol"): _flux_wire,
    ("norfab.broker", "endpoint"): _listening,
    ("norfab.broker", "back"): _listening,
    ("norfab.broker", "access"): _access,
    ("norfab.broker", "limit"): _limit,
    ("norfab.broker", "inventory"): _file,
    ("norfab.broker", "files"): _folder,
    ("norfab.worker", "broker"): _connecting,
    ("capture.proxy", "curve"): _secret_key,
    ("capture.proxy", "as"): _secret_key,
}
"""By section and key."""
