"""The wire formats that FILEMQ peers can speak, by the name of the generated package."""

from __future__ import annotations

from collections.abc import Mapping

from specwire.runtime.filemq.dialect import FILEMQ, Dialect
from specwire.runtime.filemq.libfilemq import LIBFILEMQ

DIALECTS: Mapping[str, Dialect] = {dialect.name: dialect for dialect in (FILEMQ, LIBFILEMQ)}


def find_dialect(name: str) -> Dialect:
    """Return the dialect of the generated package `name`; raises ValueError for one that is not spoken."""
    try:
        return DIALECTS[name]
    except KeyError:
        spoken = ", ".join(sorted(DIALECTS))
        raise ValueError(f"no FILEMQ peer speaks {name!r}; known: {spoken}") from None
