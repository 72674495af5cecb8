"""What a worker asks of its broker as a client: files, and services inside the broker.

A worker's own connection carries jobs and nothing else, so this is a second one, made when a task first needs it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from specwire.runtime.transport.security import Security

if TYPE_CHECKING:
    from specwire.runtime.norfab.client import NorfabClient

CLIENT_SUFFIX = "-NFPClient"
TIMEOUT_S = 30.0


class Requests:
    """A `specwire.runtime.norfab.worker.view.Broker`, by way of a client."""

    def __init__(
        self,
        endpoints: Sequence[str],
        name: str,
        security: Sequence[Security],
        folder: Path,
        protocol: str,
    ) -> None:
        self._endpoints, self._name, self._security = endpoints, name, security
        self._folder, self._protocol = folder, protocol
        self._client: NorfabClient | None = None

    async def fetch(self, url: str) -> Path:
        """Return the local copy of a file; raises OSError."""
        raise OSError(f"{url}: not yet")

    async def ask(self, service: str, task: str, kwargs: dict[str, Any]) -> Any:
        """Return what the service says; raises OSError."""
        raise OSError(f"{service} {task}: not yet {msgspec.json.encode(kwargs)!r}")

    async def close(self) -> None:
        """Close the connection, if there is one."""
