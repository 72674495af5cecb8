"""A connector in a process of its own: answers with the request's payload, and says on standard output what it sees.

A request to ``keep.…`` is not answered. Users other than its own are denied with EPERM.

    python -m tests.integration.flux_hub PATH
"""

from __future__ import annotations

import asyncio
import os
import sys

from specwire.generated.flux import AnyMessage, Request
from specwire.runtime.flux.answering import respond
from specwire.runtime.flux.connector import Connector

EPERM = 1


def say(line: str) -> None:
    """Print a line at once."""
    print(line, flush=True)


async def main(path: str) -> None:
    """Serve until standard input ends."""

    def accept(client: str, uid: int, pid: int) -> int:
        say(f"connects uid={uid} pid={pid}")
        return 0 if uid == os.getuid() else EPERM

    def answer(client: str, message: AnyMessage) -> None:
        assert isinstance(message, Request)
        if (message.topic or "").startswith("keep."):
            say(f"keeps {message.matchtag}")
        else:
            connector.send(client, respond(message, message.payload))

    connector = Connector(
        path,
        on_accept=accept,
        on_message=answer,
        on_gone=lambda client, reason: say(f"gone: {reason}"),
        max_unread_octets=1 << 20,
    )
    await connector.start()
    say("ready")
    await asyncio.to_thread(sys.stdin.read)
    await connector.stop()
    say(
        f"malformed={connector.counts.malformed} slow={connector.counts.slow} denied={connector.counts.denied}"
    )


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
