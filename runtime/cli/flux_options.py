"""Options that `specwire flux start` and `specwire flux broker` have in common, and what they mean."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from specwire.runtime.kernel.settings_groups import FIRST_MESSAGE_BOUND, UNFINISHED_BOUND

if TYPE_CHECKING:
    from specwire.runtime.capture import Limits, Tap
    from specwire.runtime.flux.wire import Wire

CaptureOption = Annotated[
    Path | None,
    typer.Option(help="Write every message to capture segments in this folder.", show_default=False),
]

TimerOption = Annotated[
    list[str] | None,
    typer.Option(
        "--timer",
        metavar="NAME=SECONDS",
        help="Instead of what the protocol says: heartbeat, idle, torpid or expiry. May be repeated.",
        show_default=False,
    ),
]

ServiceOption = Annotated[
    list[str] | None,
    typer.Option(
        "--service",
        metavar="NAME=MODULE:CLASS",
        help="Run a service in Python in the broker. May be repeated.",
        show_default=False,
    ),
]

GuestsOption = Annotated[
    bool, typer.Option("--allow-guests", help="Let other users connect; each service says what they may do.")
]

LetterOption = Annotated[
    bool,
    typer.Option("--letter", help="Speak by the letter of the specification, not as deployed brokers do."),
]

ProtocolOption = Annotated[
    str,
    typer.Option(
        "--protocol",
        metavar="NAME",
        help="What brokers speak to each other: flux, or the older cmb1 or cmb1_json.",
    ),
]

CurveOption = Annotated[
    bool,
    typer.Option(
        "--curve/--no-curve",
        help="Encrypt between brokers; without, on this machine only.",
        show_default=False,
    ),
]

QuietOption = Annotated[bool, typer.Option("--quiet", help="Tell only of what went wrong.")]

VerboseOption = Annotated[bool, typer.Option("--verbose", help="Tell of every client that comes and goes.")]


def choose_wire(protocol: str, *, letter: bool) -> Wire:
    """Return the wire format that the options ask for; raises ValueError."""
    from specwire.runtime.flux.wires import find_wire

    return find_wire(protocol, letter=letter)


@contextmanager
def open_tap(
    folder: Path | None, name: str, wire: Wire, limits: Limits | None = None
) -> Iterator[Tap | None]:
    """Open a tap for a capture in `folder`, None where there is none; raises CaptureError."""
    if folder is None:
        yield None
        return
    from specwire.runtime.capture import Tap

    with Tap.open(folder, protocol=wire.name, name=name, edition=wire.edition, limits=limits) as tap:
        yield tap


def read_timers(words: Sequence[str] | None) -> dict[str, float]:
    """Return all timers, those in `words` in place of the protocol's; raises ValueError."""
    from specwire.generated.flux.machine import TIMERS

    timers = dict(TIMERS)
    for word in words or ():
        name, separator, seconds = word.partition("=")
        if not separator or name not in timers:
            raise ValueError(f"--timer {word}: NAME=SECONDS is wanted, with one of {', '.join(timers)}")
        try:
            timers[name] = float(seconds)
        except ValueError:
            raise ValueError(f"--timer {word}: {seconds!r} is no number of seconds") from None
        if not 0 < timers[name] < float("inf"):
            raise ValueError(f"--timer {word}: more than 0 seconds are wanted")
    return timers


def load_services(words: Sequence[str] | None) -> dict[str, object]:
    """Return an object of each class, by the name of its service; raises ValueError."""
    services: dict[str, object] = {}
    for word in words or ():
        name, _, place = word.partition("=")
        module, _, kind = place.partition(":")
        if not (name and module and kind):
            raise ValueError(f"--service {word}: NAME=MODULE:CLASS is wanted")
        if name in services:
            raise ValueError(f"--service {word}: there is a service {name} already")
        try:
            services[name] = getattr(import_module(module), kind)()
        except ModuleNotFoundError as error:
            raise ValueError(f"--service {word}: {error}; Python looks in {sys.path}") from None
        except AttributeError:
            raise ValueError(f"--service {word}: {module} has no class {kind}") from None
    return services


MESSAGE_OCTETS = 8 << 20
UNDELIVERED_OCTETS = 256 << 20
"""Defaults, equal to those of `specwire.runtime.transport.inflow`, which is slow to import."""

MessageOctetsOption = Annotated[
    int, typer.Option("--message-octets", metavar="OCTETS", min=1, help=FIRST_MESSAGE_BOUND.help)
]

UndeliveredOctetsOption = Annotated[
    int, typer.Option("--undelivered-octets", metavar="OCTETS", min=1, help=UNFINISHED_BOUND.help)
]
