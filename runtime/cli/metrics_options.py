"""The options `--metrics…` and `--log-format`, and where a server shows its metrics.

The libraries for metrics are imported only if a server shows them.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from specwire.runtime.cli.config_option import option_from
from specwire.runtime.cli.console import fail
from specwire.runtime.kernel.settings_groups import LOG_FORMAT, MetricsSettings
from specwire.runtime.log.form import LogForm
from specwire.runtime.observe.place import Place, read_place
from specwire.runtime.transport.endpoint import MAX_PORT

LIBRARIES = ("aiohttp", "prometheus_client")

MetricsOption = Annotated[str | None, option_from(MetricsSettings, "address", "--metrics")]
MetricsAnywhereOption = Annotated[bool, option_from(MetricsSettings, "anywhere", "--metrics-anywhere")]
MetricsPasswordOption = Annotated[
    Path | None, option_from(MetricsSettings, "password-file", "--metrics-password-file")
]

LogFormatOption = Annotated[LogForm, typer.Option("--log-format", help=LOG_FORMAT.help)]


def read_metrics(
    metrics: str | None, *, anywhere: bool, password_file: Path | None = None, servers: int = 1
) -> Place | None:
    """Return where the server is to show itself, None where it is not.

    Args:
        servers: how many there are, at as many ports, one after the other.

    Raises:
        ValueError: `metrics` is no place, or one that others reach although that was not asked for;
            or the password cannot be used.
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
    from specwire.runtime.observe.access import read_password
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
