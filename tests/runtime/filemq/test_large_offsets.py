"""A file of more than 2^32 octets through both engines and the wire format, without a disk and without its octets."""

from __future__ import annotations

from collections import deque

import pytest

from specwire.generated.filemq import Cheezburger
from specwire.runtime.filemq.catalogue import ReadChunk
from specwire.runtime.filemq.codec import DIALECTS, FILEMQ
from specwire.runtime.filemq.diskwork import CompleteFile, Held, ListHeld, WriteChunk, Wrote
from specwire.runtime.kernel.effects import Ask, AwaitRoom, Send
from tests.runtime.filemq.client_desk import ClientDesk
from tests.runtime.filemq.server_driver import ServerDriver, entry

CHUNK = 16 << 20
SIZE = 2**32 + CHUNK + 5
ZEROS = bytes(CHUNK)
SHA1 = "A" * 40


@pytest.mark.parametrize("protocol", DIALECTS)
def test_offset_is_eight_octets_on_the_wire(protocol: str) -> None:
    """Of both dialects; the C implementation's chunk is copied into its frame, so a whole file would take seconds."""
    dialect = DIALECTS[protocol]
    command = Cheezburger(
        sequence=2**33, operation=1, filename="/large", offset=2**32 + 5, headers=(), chunk=b"octets"
    )
    frames = dialect.encode(command)
    assert bytes.fromhex("0000000100000005") in frames[0]
    assert list(dialect.decode(frames)) == [command]


def test_offsets_and_sizes_beyond_32_bits() -> None:
    """Each chunk is asked for, sent, and ordered to be written where the one before it ended."""
    server = ServerDriver(entry("/large", SIZE, SHA1), chunk_octets=CHUNK)
    client = ClientDesk("/", window_octets=4 * CHUNK)
    todo = deque[object](client.start())
    read = written = 0
    completed: list[CompleteFile] = []
    while todo:
        match todo.popleft():
            case Send(peer=peer, message=command) if peer == client.peer:
                todo.extend(server.receive(FILEMQ.encode(command)))
            case Send(message=command):
                todo.extend(client.receive_frames(FILEMQ.encode(command)))
            case AwaitRoom(octets=octets):
                todo.extend(server.make_room(octets))
            case Ask(request=ReadChunk(offset=offset, size=size)) as asked:
                assert offset == read
                read += size
                todo.extend(server.read(asked, ZEROS[:size] if size < CHUNK else ZEROS))
            case WriteChunk(connection=connection, offset=offset, chunk=chunk):
                assert offset == written
                written += len(chunk)
                todo.extend(client.settle(Wrote(connection, len(chunk))))
            case ListHeld(connection=connection, path=path):
                todo.extend(client.settle(Held(connection, path, {})))
            case CompleteFile() as complete:
                completed.append(complete)
    assert read == written == SIZE
    assert [(file.name, file.size, file.sha1) for file in completed] == [("/large", SIZE, SHA1)]
