"""What bounds a client's connection, on asyncio or not."""

from __future__ import annotations

MAX_MESSAGE_OCTETS = 64 << 20
"""The longest message from the broker, which has no reason to send a longer one."""

READ_OCTETS = 256 * 1024
"""Octets that are read at a time."""

RETRY_S = 0.01
"""How long to wait before the next try where too many want to connect at the same time."""

LINGER_S = 5.0
"""How long a connection that is being closed may take to get rid of what was sent."""
