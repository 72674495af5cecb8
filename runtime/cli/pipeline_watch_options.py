"""Options of `specwire pipeline watch`, except those that say where Spark runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

ALERTING = "Alerts"

Capture = Annotated[Path, typer.Option(help="Folder that segments are written to.", show_default=False)]
Out = Annotated[
    Path,
    typer.Option(
        help="Folder to write; an output of `pipeline run` or `watch` is continued.", show_default=False
    ),
]
Protocol = Annotated[
    str | None,
    typer.Option(help="Read every message as this protocol, not as its tap stated.", show_default=False),
]
Once = Annotated[bool, typer.Option("--once", help="Process the existing segments, then exit.")]
Every = Annotated[float, typer.Option(min=0.1, help="Minimum seconds between two batches.")]
AnswersEvery = Annotated[
    float,
    typer.Option(
        min=0,
        help="Seconds between updates of the answers while messages arrive; a tenth of this in a pause.",
    ),
]
Gap = Annotated[float, typer.Option(min=0, help="Seconds to wait for a missing segment between two others.")]
Alerts = Annotated[bool, typer.Option(help="Watch every conversation for alerts.", rich_help_panel=ALERTING)]
SilentAfter = Annotated[
    float | None,
    typer.Option(
        min=0,
        help="Seconds after which a peer is silent.  [default: from the protocol's timers]",
        show_default=False,
        rich_help_panel=ALERTING,
    ),
]
AlertLines = Annotated[
    Path | None,
    typer.Option(
        help="File to append each alert to as a line of JSON.",
        show_default=False,
        rich_help_panel=ALERTING,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print each batch and alert as a line of JSON.")]
