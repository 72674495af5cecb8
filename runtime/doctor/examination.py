"""All that is looked at, in the order in which a person reads it.

A machine that is broken in a way nobody foresaw is what doctors are called for: whatever goes wrong while one thing is
looked at is the finding on that thing, and the others are looked at all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

from specwire.runtime.doctor.finding import Finding, State
from specwire.runtime.doctor.libraries import examine_arrow, examine_libraries
from specwire.runtime.doctor.programs import (
    examine_codecs,
    examine_jar,
    examine_java,
    examine_python,
    examine_system,
    examine_transport,
    examine_workers,
)
from specwire.runtime.doctor.resources import examine_resources

_STUMBLED = (AttributeError, ImportError, LookupError, OSError, RuntimeError, TypeError, ValueError)
"""What a look at something can run into that is not as anybody thought."""

Examination = Callable[[], Finding | Iterator[Finding]]


def examine(folder: Path) -> Iterator[Finding]:
    """Look at everything and yield a finding for each; `folder` is where the user works."""
    examinations: tuple[tuple[str, Examination], ...] = (
        ("system", examine_system),
        ("python", examine_python),
        ("libraries", examine_libraries),
        ("codecs", examine_codecs),
        ("transport", examine_transport),
        ("arrow", examine_arrow),
        ("java", examine_java),
        ("workers", examine_workers),
        ("jar", examine_jar),
        ("sockets", _examine_sockets),
        ("resources", lambda: examine_resources(folder)),
    )
    for name, look in examinations:
        yield from findings_of(name, look)


def _examine_sockets() -> Iterator[Finding]:
    """Yield nothing without ZeroMQ, which the finding on the transport names."""
    if find_spec("zmq") is not None:
        from specwire.runtime.doctor.sockets import examine_sockets

        yield from examine_sockets()


def findings_of(name: str, look: Examination) -> Iterator[Finding]:
    """Yield what `look` finds; what it stumbles over is the last finding, under `name`."""
    try:
        found = look()
        yield from [found] if isinstance(found, Finding) else found
    except _STUMBLED as error:
        told = f"looking at it failed: {type(error).__name__}: {error}"
        yield Finding(name, State.WRONG, told, "report this, with what else is found")
