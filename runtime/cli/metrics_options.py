"""Options by which every server shows how it is: over HTTP, and in its log; and what they mean.

The libraries behind `--metrics` are imported only where it is used.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from specwire.runtime.cli.console import fail
from specwire.runtime.log.form import LogForm
from specwire.runtime.observe.place import Place, read_place
from specwire.runtime.transport.endpoint import MAX_PORT

LIBRARIES = ("aiohttp", "prometheus_client")

MetricsOption = Annotated[
    str | None,
    typer.Option(
        "--metrics",
        metavar="[HOST:]PORT",
        help="Show a live page, and metrics for Prometheus at /metrics, over HTTP at this port of this machine.",
        show_default=False,
    ),
]

MetricsAnywhereOption = Annotated[
    bool,
    typer.Option(
        "--metrics-anywhere",
        help="Let --metrics name a host that other machines reach; nothing is encrypted.",
    ),
]

MetricsPasswordOption = Annotated[
    Path | None,
    typer.Option(
        "--metrics-password-file",
        metavar="FILE",
        help="Ask for the password in this file before --metrics shows anything.",
        show_default=False,
    ),
]

LogFormatOption = Annotated[
    LogForm,
    typer.Option("--log-format", help="Lines for people, or one JSON object a line for programs."),
]


def read_metrics(
    metrics: str | None, *, anywhere: bool, password_file: Path | None = None, servers: int = 1
) -> Place | None:
    """Return where the server is to show itself, None where it is not.

    Args:
        servers: how many there are, at as many ports, one after the other.

    Raises:
        ValueError: `metrics` is no place, or one that others reach although that was not asked for; or the password
            cannot be used.
        TransportError: a port is taken.
        CommandError: the libraries that this needs are missing.
    """
    if metrics is None:
        return None
    place = read_place(
        metrics, anywhere=anywhere, password_file=str(password_file.absolute()) if password_file else ""
    )
    for library in LIBRARIES:
        if find_spec(library) is None:
            fail(f"--metrics needs {library}: pip install 'specwire[metrics]'", status=1)
    from specwire.runtime.observe.http.password import read_password
    from specwire.runtime.transport.port import require_free

    if password_file is not None:
        read_password(password_file)
    if place.port + servers - 1 > MAX_PORT:
        raise ValueError(
            f"--metrics {metrics}: {servers} servers need as many ports, and {MAX_PORT} is the last"
        )
    for number in range(servers if place.port else 0):
        require_free(f"tcp://{place.next(number)}")
    return place
