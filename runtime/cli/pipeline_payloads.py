"""Option of pipeline commands for payloads with separate schemas."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from specwire.runtime.spark.pipeline.payloads import PayloadColumn

Payloads = Annotated[
    list[Path] | None,
    typer.Option(
        help="Profile whose [[payload]] tables become columns of the typed tables; repeat for each protocol.",
        show_default=False,
    ),
]


def read_payloads(profiles: Sequence[Path] | None, protocol: str | None) -> tuple[PayloadColumn, ...]:
    """Return the columns that profiles define; raises InputError if a profile cannot be used."""
    from specwire.runtime.spark.pipeline.payloads import read_profiles

    return read_profiles(profiles or (), protocol)
