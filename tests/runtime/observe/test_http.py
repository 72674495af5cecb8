"""The web server inside a server: what it answers, to whom, and how little of it an outsider can take."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import re
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from aiohttp import web

from specwire.runtime.observe.access import MAX_CONNECTIONS, ConnectionLimiter, is_known_host, read_password
from specwire.runtime.observe.place import Place
from specwire.runtime.observe.showing import Showing
from specwire.runtime.observe.site import FAULTS, PER_S, FaultsOnly
from specwire.runtime.observe.view import Health, Notice
from specwire.runtime.transport.errors import TransportError
from tests.runtime.observe.shown import ANY, Answer, Still, ask, connect, play, port_of


def asked(path: str, still: Still | None = None, *, host: str = "localhost", method: str = "GET") -> Answer:
    """Return what a server answers."""

    async def story() -> Answer:
        async with Showing((still or Still()).subject(), ANY) as showing:
            return await ask(showing, path, host=host, method=method)

    return play(story())


def test_metrics_are_text_that_prometheus_reads() -> None:
    answer = asked("/metrics")
    assert answer.status == 200
    assert answer.headers["Content-Type"].startswith("text/plain; version=")
    assert "\nspecwire_test_depth 3.0\n" in answer.body
    assert re.search(r"^specwire_event_loop_lag_seconds \d", answer.body, re.MULTILINE)
    assert "\nprocess_resident_memory_bytes " in answer.body


def test_the_view_is_json_and_is_in_the_page_already() -> None:
    view = json.loads(asked("/view.json").body)
    assert view["view"]["name"] == "tcp://127.0.0.1:5670"
    assert [rate["label"] for rate in view["rates"]] == ["content", "files"]
    page = asked("/")
    assert page.headers["Content-Type"] == "text/html; charset=utf-8"
    (first,) = re.findall(r'<script id="first" type="application/json">(.*?)</script>', page.body, re.DOTALL)
    assert json.loads(first)["view"] == view["view"]


def test_the_page_needs_nobody_else_and_allows_nothing_else() -> None:
    """No font, script or picture from elsewhere; and the policy names the only script and style by their digests."""
    page = asked("/")
    assert not re.findall(r"(?:src|href)=[\"']?(?:https?:)?//", page.body)
    policy = page.headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy and "*" not in policy and "frame-ancestors 'none'" in policy
    assert page.headers["X-Content-Type-Options"] == "nosniff"
    assert page.headers["Server"] == "specwire"


def test_a_name_that_ends_the_script_does_not() -> None:
    still = Still()
    evil = "</script><script>alert(1)</script>"
    still.shown = msgspec.structs.replace(still.shown, name=evil, notices=(Notice("", "<!--" + evil),))
    page = asked("/", still)
    assert "alert(1)" in page.body
    assert "<script>alert" not in page.body and "</script><" not in page.body.replace("</script>\n<", "")
    assert json.loads(page.body.split('"application/json">')[1].split("</script>")[0])["view"]["name"] == evil


@pytest.mark.parametrize(("tone", "status"), [("good", 200), ("fair", 200), ("bad", 503)])
def test_health_is_a_word_and_a_status(tone: str, status: int) -> None:
    still = Still()
    still.shown = msgspec.structs.replace(still.shown, health=Health("so so", tone))  # type: ignore[arg-type]
    answer = asked("/health", still)
    assert (answer.status, answer.body) == (status, "so so\n")
    assert still.looks == 0, "whoever asks for health does not look at the page"


@pytest.mark.parametrize(
    ("path", "method", "status"),
    [
        ("/nothing", "GET", 404),
        ("/../etc/passwd", "GET", 404),
        ("/metrics", "POST", 405),
        ("/", "DELETE", 405),
    ],
)
def test_there_is_nothing_else(path: str, method: str, status: int) -> None:
    answer = asked(path, method=method)
    assert answer.status == status
    assert "Traceback" not in answer.body


@pytest.mark.parametrize(
    ("host", "own", "known"),
    [
        ("localhost:9464", "127.0.0.1", True),
        ("LOCALHOST.", "127.0.0.1", True),
        ("127.0.0.1:80", "127.0.0.1", True),
        ("[::1]:9464", "::1", True),
        ("10.1.2.3", "0.0.0.0", True),
        ("node7:9464", "node7", True),
        ("node7.cluster:9464", "0.0.0.0", True),
        ("rebound.example", "127.0.0.1", False),
        ("127.0.0.1.example:9464", "127.0.0.1", False),
        ("localhost.example", "127.0.0.1", False),
        ("", "127.0.0.1", False),
    ],
)
def test_a_page_elsewhere_cannot_ask_under_a_name_of_its_own(host: str, own: str, known: bool) -> None:
    assert is_known_host(host, own) is known


@pytest.mark.parametrize("path", ["/", "/view.json", "/metrics", "/health"])
def test_an_unknown_host_learns_nothing(path: str) -> None:
    answer = asked(path, host="rebound.example")
    assert answer.status == 421
    assert "specwire_" not in answer.body and "5670" not in answer.body


@pytest.mark.parametrize(
    ("said", "status"),
    [
        ("", 401),
        ("Bearer correct horse battery", 200),
        ("bearer  correct horse battery", 200),
        ("Bearer correct horse", 401),
        ("Basic " + base64.b64encode(b"anybody:correct horse battery").decode(), 200),
        ("Basic " + base64.b64encode(b"correct horse battery").decode(), 401),
        ("Basic !!", 401),
        ("Digest correct horse battery", 401),
    ],
)
def test_where_there_is_a_password_it_has_to_be_known(said: str, status: int, tmp_path: Path) -> None:
    file = private(tmp_path, "correct horse battery\nnot this line\n")

    async def story() -> list[Answer]:
        place = Place("127.0.0.1", 0, str(file))
        async with Showing(Still().subject(), place) as showing:
            return [
                await ask(showing, path, authorization=said)
                for path in ("/", "/view.json", "/metrics", "/health", "/nothing")
            ]

    *known, unknown = play(story())
    assert [answer.status for answer in known] == [status] * 4
    assert unknown.status == (404 if status == 200 else 401)
    if status == 401:
        assert all(answer.body == "a password is wanted\n" for answer in known)
        assert known[0].headers["WWW-Authenticate"].startswith("Basic ")


def private(folder: Path, text: str) -> Path:
    """Write a file that is its owner's alone."""
    file = folder / "password"
    file.write_text(text)
    file.chmod(0o600)
    return file


def test_a_password_that_others_can_read_or_guess_is_none(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="has 5 characters, and 12 are required"):
        read_password(private(tmp_path, "short\n"))
    file = private(tmp_path, "long enough for anybody\n")
    assert read_password(file) == "long enough for anybody"
    file.chmod(0o640)
    with pytest.raises(ValueError, match="can be read by others: chmod 600 it"):
        read_password(file)
    with pytest.raises(ValueError, match="cannot be read: No such file or directory"):
        read_password(tmp_path / "none")


HOSTILE = (
    b"\x00\xff" * 100 + b"\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 100_000 + b"\r\n\r\n",
    b"GET http://[bad HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nZZZZ\r\n",
    b"GET /%00%ff%0d%0a HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: \xff[\r\n\r\n",
    b"CONNECT elsewhere:80 HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nAccept: application/openmetrics-text;version=zz,a;q=b\r\n\r\n",
    b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nAccept: \xff\xfe\r\n\r\n",
)


def test_what_strangers_send_is_answered_and_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    """Whatever it is: no fault of ours, no line in the log, and the next one is served."""

    async def story() -> list[bytes]:
        answers = []
        async with Showing(Still().subject(), ANY) as showing:
            for octets in HOSTILE:
                reader, writer = await connect(showing)
                writer.write(octets)
                answers.append(await reader.readline())
                writer.close()
            assert (await ask(showing, "/health")).status == 200
        return answers

    answers = play(story())
    statuses = [int(answer.split()[1]) for answer in answers]
    assert statuses == [400, 400, 400, 400, 404, 421, 404, 404, 200, 200]
    assert caplog.records == []


def test_a_fault_of_ours_is_logged_a_few_times(caplog: pytest.LogCaptureFixture) -> None:
    """By our loggers, so that it is a line of the server's log in whichever form."""

    def fail() -> Health:
        raise ZeroDivisionError

    async def story() -> list[int]:
        subject = replace(Still().subject(), health=fail)
        async with Showing(subject, ANY) as showing:
            return [(await ask(showing, "/health")).status for _ in range(20)]

    assert play(story()) == [500] * 20
    assert [record.name.partition(".")[0] for record in caplog.records] == ["specwire"] * FAULTS


def test_faults_are_told_again_after_a_while() -> None:
    now = 0.0
    faults = FaultsOnly(lambda: now)

    def told() -> int:
        record = logging.LogRecord("specwire", logging.ERROR, "", 0, "it failed", (), None)
        return sum(faults.filter(record) for _ in range(10))

    assert told() == FAULTS
    now = PER_S
    assert told() == FAULTS


def test_many_readers_cost_no_more_than_one() -> None:
    async def story() -> int:
        still = Still()
        async with Showing(still.subject(), ANY) as showing:
            for _ in range(5):
                await asyncio.gather(*(ask(showing, "/view.json") for _ in range(8)))
        return still.looks

    # A view lasts half a second: forty answers make forty views only where they take twenty seconds.
    assert play(story()) < 40


def test_connections_are_bounded() -> None:
    """Whoever opens more is hung up on, and the broker keeps its descriptors."""

    async def story() -> bytes:
        async with Showing(Still().subject(), ANY) as showing:
            opened = [await connect(showing) for _ in range(MAX_CONNECTIONS + 10)]
            late = [asyncio.create_task(reader.read()) for reader, _ in opened[MAX_CONNECTIONS:]]
            await asyncio.wait(late)
            reader, first = opened[0]
            first.write(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
            answer = await reader.readuntil(b"serving\n")
            for _, writer in opened:
                writer.close()
            return answer

    assert play(story()).startswith(b"HTTP/1.1 200 OK"), "those who came in time are served"


def test_a_silent_connection_is_closed() -> None:
    """Half a request says nothing either."""

    async def story() -> object:
        async def answer(request: web.BaseRequest) -> web.StreamResponse:
            raise AssertionError("nothing was asked")

        server = web.Server(answer)
        limiter = ConnectionLimiter(server, idle_s=0.0)
        loop = asyncio.get_running_loop()
        listening = await loop.create_server(limiter.admit, "127.0.0.1", 0)
        reader, writer = await asyncio.open_connection(*listening.sockets[0].getsockname()[:2])
        writer.write(b"GET / HTTP/1.1\r\n")
        while not server.connections:
            await asyncio.sleep(0)
        reading = asyncio.create_task(reader.read())
        while not reading.done():
            limiter.sweep()
            await asyncio.sleep(0)
        writer.close()
        listening.close()
        await server.shutdown(0.1)
        return reading.exception() or reading.result()

    ended = play(story())
    assert ended == b"" or isinstance(ended, ConnectionResetError)


def test_a_port_that_is_taken_is_told() -> None:
    async def story() -> None:
        async with (
            Showing(Still().subject(), ANY) as first,
            Showing(Still().subject(), Place("127.0.0.1", port_of(first))),
        ):
            pass

    with pytest.raises(
        TransportError, match=r"cannot listen on 127\.0\.0\.1:\d+: Address already in use; end"
    ):
        play(story())


def test_it_ends_although_somebody_is_connected() -> None:
    async def story() -> bytes:
        async with Showing(Still().subject(), ANY) as showing:
            reader, writer = await connect(showing)
            writer.write(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
            await reader.readuntil(b"serving\n")
        rest = await reader.read()
        writer.close()
        return rest

    assert play(story()) == b""
