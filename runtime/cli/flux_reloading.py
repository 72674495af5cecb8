"""What `specwire flux broker` reads again at SIGHUP: the keys of its instance, how much it tells, and who may connect."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from specwire.runtime.cli.flux_running import BrokerLog
from specwire.runtime.cli.rekeying import Rekeying
from specwire.runtime.cli.reloading import Apply
from specwire.runtime.flux.narration import Level
from specwire.runtime.flux.serve import FluxBroker
from specwire.runtime.transport.keys import KeyPair, load_keys


def appliers_of(broker: FluxBroker, log: BrokerLog, *, quiet: bool, verbose: bool) -> dict[str, Apply]:
    """Return functions that apply other settings while the broker runs."""
    said = {"quiet": quiet, "verbose": verbose}

    def make_applier(name: str) -> Apply:
        def hold(value: bool) -> None:
            said[name] = value
            log.set_level(choose_level(**said))

        return hold

    return {
        "quiet": make_applier("quiet"),
        "verbose": make_applier("verbose"),
        "allow_guests": broker.allow_guests,
    }


def choose_level(*, quiet: bool, verbose: bool) -> Level:
    """Return what is told."""
    return Level.VERBOSE if verbose else Level.QUIET if quiet else Level.NORMAL


def rereads_of(
    broker: FluxBroker, log: BrokerLog, keys: KeyPair | None, file: Path | None
) -> list[Callable[[], None]]:
    """Return what is read again: the keys of the instance, where the broker has some."""
    if keys is None or file is None:
        return []
    return [Rekeying(lambda: load_keys(file), keys, broker.change_keys, log.line).reread]
