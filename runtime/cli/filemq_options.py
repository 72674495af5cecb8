"""Options that `specwire filemq serve` and `subscribe` have in common, and what they mean."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from specwire.runtime.filemq.dialect import FILEMQ
from specwire.runtime.filemq.dialects import DIALECTS, find_dialect

if TYPE_CHECKING:
    from specwire.runtime.capture import Limits, Tap

DEFAULT_PROTOCOL = FILEMQ.name
REPORT_EVERY_S = 600

EXIT_STATUSES = "Exit status: 0 after SIGINT or SIGTERM; 1 when the job failed; 2 for usage and bad input."

ProtocolOption = Annotated[
    str,
    typer.Option(
        help="Wire format that the other side speaks: "
        + ", ".join(f"{dialect.name} ({dialect.title})" for dialect in DIALECTS.values())
        + "."
    ),
]

CaptureOption = Annotated[
    Path | None,
    typer.Option(help="Write every message to capture segments in this folder.", show_default=False),
]

CurveOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Encrypt, and prove who this is, with this secret key (.key_secret; `specwire keys` makes one).",
        show_default=False,
    ),
]

QuietOption = Annotated[
    bool, typer.Option("--quiet", help="No lines and no bars for single files; peers and refusals are told.")
]

JsonOption = Annotated[
    bool,
    typer.Option("--json", help="At the end, write the status with all counters to standard output as JSON."),
]

ReportOption = Annotated[
    float, typer.Option(min=0, metavar="SECONDS", help="How often the log has a line of counts; 0 for never.")
]

StatusOption = Annotated[
    bool, typer.Option("--status/--no-status", help="Answer `specwire filemq status`.", show_default=False)
]


def require_folder(path: Path, option: str) -> None:
    """Raise ValueError where what `option` names is there and no folder."""
    if path.exists() and not path.is_dir():
        raise ValueError(f"{option}: {path} is not a folder")


@contextmanager
def open_tap(
    folder: Path | None, name: str, protocol: str, limits: Limits | None = None
) -> Iterator[Tap | None]:
    """Open a tap for a capture in `folder`, None where there is none; raises CaptureError or ValueError."""
    dialect = find_dialect(protocol)
    if folder is None:
        yield None
        return
    require_folder(folder, "--capture")
    from specwire.runtime.capture import Tap

    tap = Tap.open(folder, protocol=dialect.name, name=name, edition=dialect.edition, limits=limits)
    try:
        yield tap
    finally:
        tap.close()
