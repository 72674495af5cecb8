"""Flux's local socket between processes: who may come in, and what is left when one of the two is killed."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from specwire.runtime.flux import blocking
from specwire.runtime.flux.errors import FluxError
from specwire.runtime.flux.handle import FluxHandle, connect

ROOT = Path(__file__).parents[2]
NOBODY = 65534
TIMEOUT_S = 60.0

pytestmark = pytest.mark.peers


class Hub:
    """The server's process."""

    def __init__(self, path: Path) -> None:
        self.uri = f"local://{path}"
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.integration.flux_hub", os.fspath(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )

    def line(self) -> str:
        """Return the next line that it prints."""
        assert self.process.stdout
        return self.process.stdout.readline().rstrip("\n")

    def last_line(self) -> str:
        """Let it end, and return the last line."""
        out, _ = self.process.communicate(timeout=TIMEOUT_S)
        return str(out).rstrip("\n").rpartition("\n")[2]


@contextmanager
def hub(path: Path) -> Iterator[Hub]:
    running = Hub(path)
    try:
        assert running.line() == "ready"
        yield running
    finally:
        running.process.kill()
        running.process.communicate()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Hub]:
    """A server that is ready."""
    with hub(tmp_path / "local-0") as running:
        yield running


def client(uri: str, code: str, *, user: int | None = None) -> subprocess.Popen[str]:
    """Run `code` with a handle named `handle` in another process, which becomes `user` when it has its modules."""
    program = (
        "import os\n"
        "from specwire.runtime.flux import blocking\n"
        f"{'pass' if user is None else f'os.setuid({user})'}\n"
        f"with blocking.open({uri!r}) as handle:\n"
        f"    {code}\n"
    )
    return subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=subprocess.PIPE,  # stays open, so `input()` waits
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.fspath(ROOT / "src")},
    )


def test_server_sees_uid_and_pid_of_a_client(server: Hub) -> None:
    process = client(server.uri, "print(handle.rpc('a.b', {'n': 1}).json())")
    out, err = process.communicate(timeout=TIMEOUT_S)
    assert (out, err) == ("{'n': 1}\n", "")
    assert server.line() == f"connects uid={os.getuid()} pid={process.pid}"
    assert server.line() == "gone: disconnected"


@pytest.mark.skipif(os.getuid() != 0, reason="only root can be somebody else")
def test_guest_is_kept_out_by_the_folder_and_then_by_the_octet() -> None:
    """A folder of mode 0700 is not passed; where it is opened, the broker denies with EPERM."""
    with open_folder() as folder, hub(folder / "run" / "local-0") as server:
        out, err = client(server.uri, "pass", user=NOBODY).communicate(timeout=TIMEOUT_S)
        sentence = f"there is no broker at {server.uri}: Permission denied"
        assert (out, err.rstrip().rpartition("FluxError: ")[2]) == ("", sentence)
        (folder / "run").chmod(0o711)
        process = client(server.uri, "pass", user=NOBODY)
        out, err = process.communicate(timeout=TIMEOUT_S)
        sentence = f"the broker at {server.uri} denies access: Operation not permitted"
        assert (out, err.rstrip().rpartition("FluxError: ")[2]) == ("", sentence)
        assert server.line() == f"connects uid={NOBODY} pid={process.pid}"
        with blocking.open(server.uri) as handle:
            assert handle.rpc("a.b", "in").text == "in"
        assert server.last_line() == "malformed=0 slow=0 denied=1"


@contextmanager
def open_folder() -> Iterator[Path]:
    """A folder that everybody can pass, as pytest's own cannot be."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


def test_killed_client_is_noticed_and_disturbs_no_other(server: Hub) -> None:
    """It dies with a request half written and others unanswered."""
    process = client(
        server.uri,
        "handle.tell('keep.one'); handle._socket._socket.send(b'\\x12\\0\\xee\\xff'); print('sent', flush=True); input()",
    )
    assert process.stdout
    assert process.stdout.readline() == "sent\n"
    with blocking.open(server.uri) as handle:
        handle.rpc("a.b")
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=TIMEOUT_S)
        lines = [server.line() for _ in range(4)]
        assert lines[-1].startswith("gone: malformed: "), lines
        assert handle.rpc("a.b", "still").text == "still"
    assert server.last_line() == "malformed=1 slow=0 denied=0"


def test_killed_broker_fails_every_request_that_is_under_way(server: Hub) -> None:
    count = 1000

    async def story() -> list[str]:
        async with connect(server.uri) as handle:
            waiting = [asyncio.create_task(name_of_error(handle)) for _ in range(count)]
            await asyncio.to_thread(lambda: [server.line() for _ in range(count + 1)])
            assert handle.pending == count
            server.process.kill()
            names = await asyncio.gather(*waiting)
            return [*names, await name_of_error(handle)]

    async def name_of_error(handle: FluxHandle) -> str:
        with pytest.raises(FluxError) as caught:
            await handle.rpc("keep.it")
        return caught.value.name

    assert asyncio.run(asyncio.wait_for(story(), TIMEOUT_S)) == ["ECONNRESET"] * (count + 1)


def test_stopped_client_holds_up_no_other(server: Hub) -> None:
    """A client under SIGSTOP leaves megabytes unread; ten thousand requests of another are answered meanwhile."""
    process = client(
        server.uri,
        "[handle.tell('a.b', bytes(100_000)) for _ in range(3)]; print('up', flush=True); input()",
    )
    assert process.stdout
    assert process.stdout.readline() == "up\n"
    process.send_signal(signal.SIGSTOP)

    async def story() -> None:
        async with connect(server.uri) as handle:
            for _ in range(10):
                replies = await asyncio.gather(*(handle.rpc("a.b", {"n": n}) for n in range(1000)))
                assert [reply.json()["n"] for reply in replies] == list(range(1000))

    asyncio.run(asyncio.wait_for(story(), TIMEOUT_S))
    process.kill()
    process.communicate(timeout=TIMEOUT_S)


def test_broker_that_was_killed_leaves_a_socket_that_the_next_one_replaces(tmp_path: Path) -> None:
    path = tmp_path / "local-0"
    with hub(path) as first:
        first.process.kill()
        first.process.wait(TIMEOUT_S)
    assert path.is_socket()
    with pytest.raises(FluxError, match="nobody listens on it"), blocking.open(f"local://{path}"):
        raise AssertionError("let in")
    with hub(path) as second, blocking.open(second.uri) as handle:
        assert handle.rpc("a.b", "anew").text == "anew"
