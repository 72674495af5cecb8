"""Services in Python: which method a topic means, who may call it, and that each request has one final answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specwire.generated.flux import Request, Response
from specwire.runtime.flux import service
from specwire.runtime.flux.errors import FluxError
from specwire.runtime.flux.service import ServiceHost, allow
from specwire.runtime.flux.views import ServiceRequest

OWNER, USER, LOCAL = 1, 2, 4
NORESPONSE, STREAMING, USER1 = 0x04, 0x40, 0x80
TIMEOUT_S = 60.0


class Add(msgspec.Struct):
    by: int


class Example:
    """A service with one method for each thing that can happen."""

    def __init__(self) -> None:
        self.gone: list[str] = []
        self.begun = asyncio.Event()
        self.closed = asyncio.Event()

    async def add(self, request: ServiceRequest) -> dict[str, int]:
        return {"value": 40 + request.read(Add).by}

    async def get_the_text(self, request: ServiceRequest) -> str:
        return "text"

    async def import_(self, request: ServiceRequest) -> bytes:
        return b"\0octets"

    async def nothing(self, request: ServiceRequest) -> None:
        return None

    @allow(guests=True)
    async def who(self, request: ServiceRequest) -> dict[str, int]:
        return {"userid": request.userid, "rolemask": request.rolemask}

    @allow(guests=False)
    async def owner_only(self, request: ServiceRequest) -> None:
        return None

    async def refuse(self, request: ServiceRequest) -> None:
        raise FluxError(2, "no such thing")

    async def succeed_with_an_error(self, request: ServiceRequest) -> None:
        raise FluxError(0)

    async def fail(self, request: ServiceRequest) -> None:
        raise KeyError("secret")

    async def return_nonsense(self, request: ServiceRequest) -> object:
        return object()

    @allow(guests=True)
    async def wait(self, request: ServiceRequest) -> None:
        self.begun.set()
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            self.closed.set()

    @allow(guests=True)
    async def count(self, request: ServiceRequest) -> AsyncIterator[dict[str, int]]:
        for n in range(3):
            yield {"n": n}

    async def count_and_fail(self, request: ServiceRequest) -> AsyncIterator[dict[str, int]]:
        yield {"n": 0}
        raise FluxError(113, "the end")

    async def disconnect(self, request: ServiceRequest) -> None:
        self.gone.append(request.route[-1])

    async def _hidden(self, request: ServiceRequest) -> None:
        raise AssertionError("called")

    def plain(self, request: ServiceRequest) -> None:
        raise AssertionError("called")


class Stage:
    """A host and what it has answered."""

    def __init__(self, service: object | None = None) -> None:
        self.service = Example()
        self.answers: list[Response] = []
        self.host = ServiceHost("example", service or self.service, self.answers.append)

    def ask(self, method: str, payload: bytes | None = None, *, flags: int = 0, **fields: Any) -> Request:
        fields = {
            "routes": ("hop", "client"),
            "userid": 100,
            "rolemask": OWNER | LOCAL,
            "matchtag": 7,
            **fields,
        }
        request = Request(topic=f"example.{method}", payload=payload, flags=flags, **fields)
        self.host.receive(request)
        return request

    async def idle(self) -> None:
        """Wait until nothing runs."""
        while self.host.running:
            await asyncio.sleep(0)

    async def answer(self, method: str, payload: bytes | None = None, **fields: Any) -> Response:
        """Return the only answer."""
        self.answers.clear()
        self.ask(method, payload, **fields)
        await self.idle()
        (answer,) = self.answers
        return answer


def on_stage(story: Callable[[Stage], Awaitable[None]]) -> None:
    async def main() -> None:
        async with asyncio.timeout(TIMEOUT_S):
            await story(Stage())

    asyncio.run(main())


def test_response_has_the_requests_routes_topic_matchtag_and_flags() -> None:
    """And what clients in C need: the delimiter, and a rolemask that is not 0."""

    async def story(stage: Stage) -> None:
        answer = await stage.answer("add", b'{"by":2}\0', flags=USER1)
        assert answer == Response(
            ("hop", "client"), "example.add", b'{"value":42}\0', USER1, rolemask=OWNER, matchtag=7
        )

    on_stage(story)


def test_payload_is_json_text_octets_or_none() -> None:
    async def story(stage: Stage) -> None:
        assert (await stage.answer("get-the.text")).payload == b"text\0"
        assert (await stage.answer("get_the_text")).payload == b"text\0"
        assert (await stage.answer("import")).payload == b"\0octets"
        assert (await stage.answer("nothing")).payload is None

    on_stage(story)


@pytest.mark.parametrize("method", ["nosuch", "", "_hidden", "plain", "__init__", "-hidden", "add.more"])
def test_method_that_is_not_there_is_enosys_with_the_text_of_flux_core(method: str) -> None:
    async def story(stage: Stage) -> None:
        answer = await stage.answer(method)
        assert (answer.errnum, answer.payload) == (
            38,
            f"Unknown service method 'example.{method}'\0".encode(),
        )

    on_stage(story)


@pytest.mark.parametrize(
    ("method", "rolemask", "errnum"),
    [
        ("nothing", OWNER, 0),
        ("nothing", USER | LOCAL, 1),
        ("nothing", 0, 1),
        ("owner_only", USER | LOCAL, 1),
        ("who", USER | LOCAL, 0),
        ("who", OWNER, 0),
        ("who", 0, 1),
    ],
)
def test_method_is_the_owners_unless_it_allows_guests(method: str, rolemask: int, errnum: int) -> None:
    async def story(stage: Stage) -> None:
        answer = await stage.answer(method, rolemask=rolemask)
        assert answer.errnum == errnum
        assert not errnum or answer.payload == b"Request requires owner credentials\0"

    on_stage(story)


def test_user_that_is_not_known_is_no_guest() -> None:
    """USER only if the userid is known, else EPERM."""

    async def story(stage: Stage) -> None:
        assert (await stage.answer("who", rolemask=USER, userid=0xFFFF_FFFF)).errnum == 1

    on_stage(story)


def test_error_of_the_service_is_answered_with_its_number_and_text() -> None:
    async def story(stage: Stage) -> None:
        answer = await stage.answer("refuse")
        assert (answer.errnum, answer.payload) == (2, b"no such thing\0")

    on_stage(story)


@pytest.mark.parametrize("method", ["fail", "return_nonsense", "succeed_with_an_error"])
def test_fault_of_the_service_is_eio_and_tells_nothing_of_the_inside(
    method: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def story(stage: Stage) -> None:
        answer = await stage.answer(method, b'{"p":1}\0')
        assert answer.errnum == 5
        assert (
            answer.payload == f"'example.{method}' failed; the log of the service has the reason\0".encode()
        )

    on_stage(story)
    assert f"example.{method} failed (SHA-1 of the payload: " in caplog.text


@pytest.mark.parametrize(
    "payload", [None, b"", b"{}\0", b'{"by":2}', b'{"by":"x"}\0', b"\xff\0", b"[" * 100_000 + b"\0"]
)
def test_payload_that_cannot_be_read_is_eproto(payload: bytes | None) -> None:
    async def story(stage: Stage) -> None:
        answer = await stage.answer("add", payload)
        assert answer.errnum == 71
        assert answer.payload

    on_stage(story)


def test_stream_has_the_flag_in_each_response_and_ends_with_enodata() -> None:
    async def story(stage: Stage) -> None:
        stage.ask("count", flags=STREAMING)
        await stage.idle()
        assert [(a.flags, a.errnum, a.payload) for a in stage.answers] == [
            (STREAMING, 0, b'{"n":0}\0'),
            (STREAMING, 0, b'{"n":1}\0'),
            (STREAMING, 0, b'{"n":2}\0'),
            (STREAMING, 61, None),
        ]

    on_stage(story)


def test_stream_asked_for_without_the_flag_is_eproto() -> None:
    async def story(stage: Stage) -> None:
        answer = await stage.answer("count")
        assert answer.errnum == 71
        assert b"the request has no streaming flag" in (answer.payload or b"")

    on_stage(story)


def test_stream_that_fails_ends_with_the_error() -> None:
    async def story(stage: Stage) -> None:
        stage.ask("count_and_fail", flags=STREAMING)
        await stage.idle()
        assert [(a.errnum, a.payload) for a in stage.answers] == [(0, b'{"n":0}\0'), (113, b"the end\0")]

    on_stage(story)


def test_single_response_to_a_streaming_request_is_a_stream_of_one() -> None:
    async def story(stage: Stage) -> None:
        stage.ask("nothing", flags=STREAMING)
        await stage.idle()
        assert [(a.flags, a.errnum) for a in stage.answers] == [(STREAMING, 0), (STREAMING, 61)]

    on_stage(story)


@pytest.mark.parametrize("method", ["nothing", "refuse", "fail", "nosuch", "count"])
def test_request_that_wants_no_response_gets_none(method: str) -> None:
    async def story(stage: Stage) -> None:
        stage.ask(method, flags=NORESPONSE)
        await stage.idle()
        assert stage.answers == []

    on_stage(story)


def test_disconnect_ends_what_runs_for_that_client_alone() -> None:
    """It is answered ECANCELED, so that brokers on the way forget the request."""

    async def story(stage: Stage) -> None:
        stage.ask("wait", matchtag=1)
        stage.ask("wait", matchtag=2, routes=("hop", "other"))
        stage.ask("wait", matchtag=3)  # has not begun when the client goes
        await stage.service.begun.wait()
        stage.ask("disconnect", flags=NORESPONSE, matchtag=0, rolemask=USER)
        while stage.host.running > 1:
            await asyncio.sleep(0)
        assert stage.service.gone == ["client"]
        assert sorted((a.matchtag, a.errnum) for a in stage.answers) == [(1, 125), (3, 125)]
        assert stage.service.closed.is_set()
        await stage.host.close()
        assert sorted((a.matchtag, a.errnum) for a in stage.answers) == [(1, 125), (2, 125), (3, 125)]

    on_stage(story)


def test_client_takes_one_request_back() -> None:
    """`<service>.cancel` with the matchtag; that of another client is not touched."""

    async def story(stage: Stage) -> None:
        stage.ask("wait", matchtag=1)
        stage.ask("wait", matchtag=2)
        stage.ask("wait", matchtag=2, routes=("hop", "other"))
        stage.ask("cancel", b'{"matchtag":2}\0', flags=NORESPONSE, matchtag=0, rolemask=USER)
        while stage.host.running > 2:
            await asyncio.sleep(0)
        assert [(a.routes, a.matchtag, a.errnum) for a in stage.answers] == [(("hop", "client"), 2, 125)]
        stage.answers.clear()
        stage.ask("cancel", b"{}\0")
        assert [a.errnum for a in stage.answers] == [71]
        await stage.host.close()

    on_stage(story)


@pytest.mark.parametrize("word", ["disconnect", "cancel"])
def test_guest_cannot_end_what_another_asked_for_by_a_forged_route(word: str) -> None:
    """A client may put routes below its own; the hops that brokers put on top are true."""

    async def story(stage: Stage) -> None:
        stage.ask("wait", matchtag=1, routes=("hop", "victim"))
        for forged in ((), ("hop", "guest", "victim"), ("hop", "guest", "hop", "victim")):
            stage.ask(word, b'{"matchtag":1}\0', flags=NORESPONSE, routes=forged, userid=666, rolemask=USER)
        for _ in range(10):
            await asyncio.sleep(0)
        assert (stage.answers, stage.host.running) == ([], 1)
        await stage.host.close()

    on_stage(story)


def test_disconnect_of_a_service_without_that_method_is_dealt_with_all_the_same() -> None:
    class Plain:
        async def wait(self, request: ServiceRequest) -> None:
            await asyncio.get_running_loop().create_future()

    async def main() -> None:
        stage = Stage(Plain())
        stage.ask("wait")
        stage.ask("disconnect", flags=NORESPONSE, matchtag=0)
        await stage.idle()
        assert [a.errnum for a in stage.answers] == [125]
        assert (await stage.answer("disconnect")).errnum == 0

    asyncio.run(main())


def test_requests_beyond_the_bound_are_refused_and_the_rest_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "MAX_RUNNING", 3)

    async def story(stage: Stage) -> None:
        for n in range(5):
            stage.ask("wait", matchtag=n + 1)
        assert [(a.matchtag, a.errnum) for a in stage.answers] == [(4, 11), (5, 11)]
        await stage.host.close()
        assert len(stage.answers) == 5

    on_stage(story)


def test_quick_stream_lets_others_have_their_turn() -> None:
    class Endless:
        @allow(guests=True)
        async def pour(self, request: ServiceRequest) -> AsyncIterator[None]:
            while True:
                yield None

        async def quick(self, request: ServiceRequest) -> None:
            return None

    async def main() -> None:
        stage = Stage(Endless())
        stage.ask("pour", flags=STREAMING, matchtag=1)
        stage.ask("quick", matchtag=2)
        while not any(answer.matchtag == 2 for answer in stage.answers):
            await asyncio.sleep(0)
        await stage.host.close()
        assert stage.answers[-1].errnum == 125

    asyncio.run(main())


REQUESTS = st.lists(
    st.tuples(
        st.sampled_from(
            ["add", "refuse", "fail", "wait", "count", "count_and_fail", "nothing", "nosuch", "who"]
        ),
        st.sampled_from([0, STREAMING, NORESPONSE]),
        st.sampled_from([OWNER, USER, 0]),
        st.sampled_from(["client", "other"]),
    ),
    max_size=12,
)


@given(REQUESTS, st.booleans())
def test_every_request_has_exactly_one_final_answer(
    requests: list[tuple[str, int, int, str]], leave: bool
) -> None:
    """And a request that wants none has none, whatever happens to the service in between."""

    async def story(stage: Stage) -> None:
        for matchtag, (method, flags, rolemask, client) in enumerate(requests):
            stage.ask(method, flags=flags, rolemask=rolemask, matchtag=matchtag, routes=("hop", client))
            if leave and matchtag % 3 == 2:
                stage.ask("disconnect", flags=NORESPONSE, matchtag=0, routes=("hop", client))
                await asyncio.sleep(0)
        await stage.host.close()
        final = [a.matchtag for a in stage.answers if a.errnum or not a.flags & STREAMING]
        assert sorted(final) == [n for n, (_, flags, _, _) in enumerate(requests) if flags != NORESPONSE]

    on_stage(story)
