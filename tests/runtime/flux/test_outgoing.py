"""What leaves by one transport: how many writes, and in which order."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from specwire.runtime.flux.outgoing import GATHERED_MESSAGES, GATHERED_OCTETS, MESSAGE_WEIGHT, Outgoing


class Transport(asyncio.WriteTransport):
    """Writes down what it is given; nothing of it is ever sent."""

    def __init__(self) -> None:
        super().__init__()
        self.writes: list[bytes] = []

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.writes.append(bytes(data))

    def get_write_buffer_size(self) -> int:
        return sum(map(len, self.writes))


def on_loop(story: Callable[[Outgoing, Transport], Awaitable[None]]) -> None:
    async def main() -> None:
        transport = Transport()
        await story(Outgoing(asyncio.get_running_loop(), transport), transport)

    asyncio.run(main())


def test_first_write_of_a_turn_leaves_at_once_and_the_rest_together_at_its_end() -> None:
    async def story(outgoing: Outgoing, transport: Transport) -> None:
        for octets in (b"1", b"2", b"3"):
            outgoing.write(octets)
        assert transport.writes == [b"1"]
        assert outgoing.waiting_octets == 3
        await asyncio.sleep(0)
        assert transport.writes == [b"1", b"23"]
        outgoing.write(b"4")
        assert transport.writes == [b"1", b"23", b"4"]

    on_loop(story)


def test_what_is_held_leaves_together_and_in_one_write() -> None:
    async def story(outgoing: Outgoing, transport: Transport) -> None:
        outgoing.hold()
        for octets in (b"1", b"2", b"3"):
            outgoing.write(octets)
        assert transport.writes == []
        outgoing.release()
        assert transport.writes == [b"123"]
        await asyncio.sleep(0)
        assert transport.writes == [b"123"]

    on_loop(story)


def test_no_more_is_gathered_than_the_bound() -> None:
    async def story(outgoing: Outgoing, transport: Transport) -> None:
        outgoing.hold()
        half = bytes(GATHERED_OCTETS // 2 - MESSAGE_WEIGHT)
        for _ in range(2):
            outgoing.write(half)
        assert transport.writes == []
        outgoing.write(b"x")
        assert list(map(len, transport.writes)) == [2 * len(half) + 1]
        assert outgoing.waiting_octets == 2 * len(half) + 1

    on_loop(story)


def test_many_small_messages_leave_before_all_are_there() -> None:
    async def story(outgoing: Outgoing, transport: Transport) -> None:
        outgoing.hold()
        for _ in range(2 * GATHERED_MESSAGES + 1):
            outgoing.write(b"x")
        assert transport.writes == [b"x" * GATHERED_MESSAGES] * 2
        outgoing.release()
        assert transport.writes == [b"x" * GATHERED_MESSAGES, b"x" * GATHERED_MESSAGES, b"x"]

    on_loop(story)
