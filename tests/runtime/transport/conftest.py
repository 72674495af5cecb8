"""What tests of bare sockets need."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import zmq

from tests.runtime.transport.socket_pairs import Context


@pytest.fixture
def context() -> Iterator[Context]:
    """A context whose sockets are closed at the end, with what they have not sent."""
    context: Context = zmq.Context()
    yield context
    context.destroy(linger=0)
