"""Option of pipeline commands for payloads with separate schemas."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from specwire.runtime.cli.grammars import profile_path

if TYPE_CHECKING:
    from specwire.runtime.spark.pipeline.payloads import PayloadColumn

Payloads = Annotated[
    list[Path] | None,
    typer.Option(
        metavar="PROFILE",
        help="Profile, or name of a protocol, whose [[payload]] tables become columns of the typed tables; "
        "repeat for each protocol.",
        show_default=False,
    ),
]


def read_payloads(profiles: Sequence[Path] | None, protocol: str | None) -> tuple[PayloadColumn, ...]:
    """Return the columns that profiles define; raises InputError if a profile cannot be used."""
    from specwire.runtime.spark.pipeline.payloads import read_profiles

    return read_profiles(map(profile_path, profiles or ()), protocol)
