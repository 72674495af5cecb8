"""Checks of single values of servers whose settings are parameters of their command.

A server finds the same faults when it starts; ``config check`` reports all of them, with their
lines, before that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from specwire.runtime.kernel.settings_groups import (
    check_age,
    check_connecting,
    check_file,
    check_folder,
    check_listening,
    check_metrics_address,
    check_payload,
    check_secret_key,
    check_size,
)

Check = Callable[[Any], object]
"""Raises ValueError for a value that the server would refuse."""


def _flux_wire(name: str) -> None:
    from specwire.runtime.flux.wires import find_wire

    find_wire(name, letter=False)


def _access(file: Path) -> None:
    from specwire.runtime.norfab.security.tablefile import load_table

    load_table(file)


def _limit(word: str) -> None:
    from specwire.runtime.cli.norfab_limits import read_settings

    read_settings([word], keepalive_s=1.0)


def _timer(word: str) -> None:
    from specwire.runtime.cli.flux_options import read_timers

    read_timers([word])


EVERYWHERE: Mapping[str, Check] = {
    "capture": check_folder,
    "capture-keep": check_age,
    "capture-max": check_size,
    "capture-payload": check_payload,
    "capture-free": check_size,
    "timer": _timer,
    "listen": check_listening,
    "to": check_connecting,
    "metrics": check_metrics_address,
    "metrics-password-file": check_file,
}
"""By key, in whatever section it is."""

CHECKS: Mapping[tuple[str, str], Check] = {
    ("flux.broker", "protocol"): _flux_wire,
    ("flux.start", "protocol"): _flux_wire,
    ("norfab.broker", "endpoint"): check_listening,
    ("norfab.broker", "back"): check_listening,
    ("norfab.broker", "access"): _access,
    ("norfab.broker", "limit"): _limit,
    ("norfab.broker", "inventory"): check_file,
    ("norfab.broker", "files"): check_folder,
    ("norfab.worker", "broker"): check_connecting,
    ("capture.proxy", "curve"): check_secret_key,
    ("capture.proxy", "as"): check_secret_key,
}
"""By section and key."""
