"""The option `--limit NAME=VALUE` of `specwire norfab broker`: one bound or time in place of the broker's own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, get_type_hints

import typer

from specwire.runtime.cli.console import meant
from specwire.runtime.norfab.limits import Settings

KEEPALIVE = "keepalive_s"
"""Has an option of its own."""

LimitOption = Annotated[
    list[str] | None,
    typer.Option(
        "--limit",
        metavar="NAME=NUMBER",
        help="A bound or time in place of the broker's own, such as queue_s=300 or jobs_per_client=1000; docs/how-to/operating.md "
        "lists them. May be repeated.",
        show_default=False,
    ),
]


def read_settings(words: Sequence[str] | None, *, keepalive_s: float) -> Settings:
    """Return a broker's bounds and times, those in `words` in place of its own; raises ValueError."""
    kinds = {name: kind for name, kind in get_type_hints(Settings).items() if name in names_of_limits()}
    said: dict[str, Any] = {}
    for word in words or ():
        name, _, text = word.partition("=")
        if name not in kinds:
            raise ValueError(f"--limit {word}: there is no limit {name!r}{meant(name, kinds)}")
        try:
            said[name] = kinds[name](text)
        except ValueError:
            wanted = "a whole number" if kinds[name] is int else "a number"
            raise ValueError(f"--limit {word}: {wanted} is wanted after {name}=") from None
        if not 0 < said[name] < float("inf"):
            raise ValueError(f"--limit {word}: a number above 0 is wanted")
    return Settings(keepalive_s=keepalive_s, **said)


def names_of_limits() -> tuple[str, ...]:
    """Return the names of all limits, in the order of their declaration."""
    return tuple(name for name in Settings.__struct_fields__ if name != KEEPALIVE)
