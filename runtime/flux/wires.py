"""The wire formats that brokers can speak, by the name of the generated package."""

from __future__ import annotations

from collections.abc import Mapping

from specwire.runtime.flux.cmb1 import CMB1
from specwire.runtime.flux.cmb1_json import CMB1_JSON
from specwire.runtime.flux.wire import FLUX, LETTER, Wire

WIRES: Mapping[str, Wire] = {wire.name: wire for wire in (FLUX, CMB1, CMB1_JSON)}


def find_wire(name: str, *, letter: bool = False) -> Wire:
    """Return the wire format of the generated package `name`.

    Args:
        letter: the letter of the specification, where brokers deployed have departed from it: `flux` only.

    Raises:
        ValueError: brokers do not speak it.
    """
    if name not in WIRES:
        raise ValueError(f"no broker speaks {name!r}; known: {', '.join(sorted(WIRES))}")
    if not letter:
        return WIRES[name]
    if name != LETTER.name:
        raise ValueError(f"--letter is for {LETTER.name}: {name} is spoken by the letter in any case")
    return LETTER
