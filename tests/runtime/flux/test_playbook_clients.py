"""Local clients: credentials, services of their own, and what is given back; one sentence a test."""

from __future__ import annotations

import pytest

from specwire.generated.flux import Control, Event, Request, Response
from specwire.runtime.flux import connection
from specwire.runtime.flux.actions import CloseClient, Link, Report
from specwire.runtime.flux.answering import pack, respond, unpack_object
from specwire.runtime.flux.credentials import may_use
from specwire.runtime.flux.events import ClientClosed, Dropped
from specwire.runtime.flux.flags import NORESPONSE, STREAMING, UPSTREAM
from tests.runtime.flux.tree import GUEST, OWNER, LocalClient, Tree


def credentials(client: LocalClient, request: Request) -> tuple[int, int]:
    """Return the userid and rolemask with which a request arrives."""
    client.received.clear()
    client.send(request)
    client.tree.settle()
    (answer,) = client.received
    assert isinstance(answer, Response)
    value = unpack_object(answer.payload)
    return int(value["userid"]), int(value["rolemask"])


PING = Request(topic="broker.ping", payload=b"{}\0")
UNSET = 0xFFFFFFFF


# --- ingress


def test_owner_is_stamped() -> None:
    """Instance owner: its uid, rolemask 5; LOCAL is cleared when a message arrives from the overlay."""
    client = Tree(3).client(1)
    assert credentials(client, PING) == (OWNER, 5)
    assert credentials(client, PING.replace(nodeid=2)) == (OWNER, 1)


def test_guest_is_stamped() -> None:
    """Guest: its uid, rolemask 6; what it writes itself is overwritten."""
    client = Tree(3, allow_guests=True).client(1, GUEST)
    assert credentials(client, PING) == (GUEST, 6)
    assert credentials(client, PING.replace(userid=OWNER, rolemask=1)) == (GUEST, 6)
    assert credentials(client, PING.replace(nodeid=0)) == (GUEST, 2)


@pytest.mark.parametrize(
    ("userid", "rolemask", "owners"),
    [
        (UNSET, 0, (OWNER, 5)),
        (42, 0, (42, 5)),  # as `flux proxy` sends it
        (0, 0, (0, 5)),
        (UNSET, 2, (OWNER, 2)),
        (42, 2, (42, 2)),
    ],
)
def test_each_credential_is_stamped_alone(userid: int, rolemask: int, owners: tuple[int, int]) -> None:
    """The broker sets an unset userid or rolemask independently, and overwrites a guest's."""
    ping = PING.replace(userid=userid, rolemask=rolemask)
    assert credentials(Tree(3).client(1), ping) == owners
    assert credentials(Tree(3, allow_guests=True).client(1, GUEST), ping) == (GUEST, 6)


def test_authorisation() -> None:
    """The octet after accept: 0 where a user is let in, else an errno; a denied guest gets EPERM."""
    closed, open_ = Tree(1).engines[0], Tree(1, allow_guests=True).engines[0]
    assert (closed.authorise(OWNER), closed.authorise(GUEST)) == (0, 1)
    assert (open_.authorise(OWNER), open_.authorise(GUEST)) == (0, 0)
    assert closed.accept_client("guest", GUEST, 0.0) == [CloseClient("guest", "Operation not permitted")]
    assert closed.from_client("guest", PING, 0.0) == []
    closed.stop(0.0)
    assert closed.authorise(OWNER) == 11


@pytest.mark.parametrize(
    ("topic", "value"),
    [
        ("attr.set", {"name": "a", "value": "b"}),
        ("kvs.put", {"key": "a", "value": 1}),
        ("log.clear", None),
        ("overlay.disconnect-subtree", {"rank": 1}),
    ],
)
def test_guests_may_not_change_the_instance(topic: str, value: object) -> None:
    """Authorisation: OWNER yes; USER only what is open to users; else EPERM."""
    tree = Tree(3, allow_guests=True)
    assert tree.client(0, GUEST).ask(topic, value).errnum == 1
    assert tree.client(0, OWNER).ask(topic, value).errnum == 0


def test_user_without_a_userid_may_do_nothing() -> None:
    """USER suffices only if the userid is known; otherwise EPERM."""
    assert not may_use(2, UNSET, required=2)
    assert may_use(2, GUEST, required=2)
    assert may_use(1, UNSET, required=2)


# --- what is dropped


@pytest.mark.parametrize(
    "message",
    [
        Request(payload=b"{}\0", matchtag=3),
        Control(),
        Response(topic="a.b", matchtag=3),
        Response(routes=("x", "y"), topic="a.b", matchtag=3),
        Event(payload=b"x"),
    ],
)
def test_what_nobody_gets(message: Request | Response | Event | Control) -> None:
    """A request without topic, a control message, a response that nobody awaits: dropped and counted."""
    tree = Tree(1)
    client = tree.client(0)
    (report,) = tree.engines[0].from_client(client.uuid, message, 0.0)
    assert isinstance(report, Report)
    assert isinstance(report.event, Dropped)
    assert tree.engines[0].counters.dropped == 1


def test_malformed_message_of_a_client() -> None:
    """Disconnect of that peer."""
    tree = Tree(1)
    client = tree.client(0)
    actions = tree.engines[0].malformed(Link("client", client.uuid), "odd", 0.0)
    assert actions == [
        CloseClient(client.uuid, "odd"),
        Report(ClientClosed(client.uuid, "odd")),
    ]


# --- services of clients


def test_guests_may_only_add_their_own() -> None:
    """Guests may only add ``<uid>-…``, else EPERM."""
    tree = Tree(1, allow_guests=True)
    guest = tree.client(0, GUEST)
    assert guest.ask("service.add", {"service": "mine"}).errnum == 1
    assert guest.ask("service.add", {"service": f"{GUEST + 1}-mine"}).errnum == 1
    assert guest.ask("service.add", {"service": f"{GUEST}-mine"}).errnum == 0


@pytest.mark.parametrize(
    ("service", "errnum"), [("broker", 17), ("attr", 17), ("", 22), ("a.b", 22), ("x" * 300, 22)]
)
def test_names_that_cannot_be_added(service: str, errnum: int) -> None:
    """A name that is taken is EEXIST; one that no topic can have is EINVAL."""
    assert Tree(1).client(0).ask("service.add", {"service": service}).errnum == errnum


def test_service_is_taken_back() -> None:
    """``service.remove``: only one's own; after it nobody serves."""
    tree = Tree(1)
    server, other = tree.client(0), tree.client(0)
    server.ask("service.add", {"service": "mine"})
    assert other.ask("service.remove", {"service": "mine"}).errnum == 2
    tag = other.request("mine.do", {})
    assert server.ask("service.remove", {"service": "mine"}).errnum == 0
    assert other.ask("mine.do", {}).errnum == 38
    server.send(respond(server.requests()[0], pack({"late": True})))
    assert [answer.payload for answer in other.answers(tag)] == [b'{"late":true}\0']


def test_service_that_ends_owes_nothing() -> None:
    """A client that closes with requests unanswered: each gets its one final answer."""
    tree = Tree(3)
    server, client = tree.client(0), tree.client(2)
    server.ask("service.add", {"service": "mine"})
    tags = [client.request("mine.do", {}, flags=flags) for flags in (0, STREAMING, NORESPONSE)]
    tree.settle()
    server.close()
    tree.settle()
    assert [[answer.errnum for answer in client.answers(tag)] for tag in tags] == [[38], [38], []]
    assert client.answers(tags[0])[0].payload == b"The service mine has ended\0"
    assert client.ask("mine.do", {}).payload == b"No service matching mine.do is registered\0"
    assert tree.pending() == {}


def test_python_service_that_ends_or_answers_twice() -> None:
    """The engine gives exactly one final answer, whatever the service does."""
    tree = Tree(3)
    engine, client = tree.engines[0], tree.client(2)
    engine.add_service("work")
    tags = [client.request("work.do", {}) for _ in range(2)]
    tree.settle()
    first = tree.asked[0, "work"][0]
    tree.answer(0, "work", respond(first))
    tree.answer(0, "work", respond(first))
    tree.perform(0, engine.service_gone("work", tree.now))
    tree.answer(0, "work", respond(tree.asked[0, "work"][1]))
    tree.settle()
    assert [[answer.errnum for answer in client.answers(tag)] for tag in tags] == [[0], [38]]


# --- a client that is gone


def test_disconnect_is_sent_once_for_each_way() -> None:
    """Each distinct (service, nodeid, upstream) it used gets ``<service>.disconnect``: noresponse, its credentials."""
    tree = Tree(3, 1, allow_guests=True)
    server, client = tree.client(1), tree.client(1, GUEST)
    server.ask("service.add", {"service": "mine"})
    top = tree.client(0)
    top.ask("service.add", {"service": "mine"})
    for _ in range(2):
        client.request("mine.a", {})
        client.request("mine.b", {}, nodeid=1)
        client.request("mine.c", {}, nodeid=0)
        client.request("mine.d", {}, nodeid=1, flags=UPSTREAM)
    tree.settle()
    for each in (server, top):
        each.received.clear()
    client.close()
    tree.settle()
    near, far = server.requests(), top.requests()
    assert [(request.topic, request.nodeid) for request in near] == [
        ("mine.disconnect", 0xFFFFFFFF),
        ("mine.disconnect", 1),
    ]
    assert [(request.topic, request.nodeid, request.flags) for request in far] == [
        ("mine.disconnect", 0, NORESPONSE),
        ("mine.disconnect", 1, NORESPONSE | UPSTREAM),
    ]
    assert {(request.userid, request.rolemask) for request in near} == {(GUEST, 6)}
    assert {request.matchtag for request in near + far} == {0}
    assert tree.pending() == {}


def test_what_comes_for_a_client_that_is_gone() -> None:
    """Its subscriptions go, and its answers are dropped."""
    tree = Tree(3)
    tree.engines[0].add_service("work")
    client = tree.client(2)
    client.request("event.subscribe", {"topic": ""})
    client.request("work.do", {})
    tree.settle()
    ((_, _, request),) = tree.arrived
    client.close()
    tree.settle()
    tree.answer(0, "work", respond(request))
    tree.perform(0, tree.engines[0].publish("a", None, tree.now))
    tree.settle()
    assert [event.reason for event in tree.reported(Dropped)] == ["nobody awaits it"]


# --- bounds


def test_subscriptions_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client has so many prefixes and services; the next one is ENOSPC, and nothing is lost."""
    monkeypatch.setattr(connection, "MAX_SUBSCRIPTIONS", 2)
    monkeypatch.setattr(connection, "MAX_SERVICES", 2)
    client = Tree(1).client(0)
    numbers = [client.ask("event.subscribe", {"topic": topic}).errnum for topic in ("a", "b", "c", "a")]
    assert numbers == [0, 0, 28, 0]
    assert [client.ask("service.add", {"service": name}).errnum for name in ("a", "b", "c")] == [0, 0, 28]
    assert client.ask("event.subscribe", {"topic": "x" * 300}).errnum == 71


@pytest.mark.parametrize(("userid", "bound"), [(OWNER, "MAX_USED"), (GUEST, "MAX_USED_BY_GUEST")])
def test_uses_are_bounded(monkeypatch: pytest.MonkeyPatch, userid: int, bound: str) -> None:
    """What cannot be given back later is not begun: EAGAIN."""
    monkeypatch.setattr(f"specwire.runtime.flux.clients.{bound}", 2)
    client = Tree(1, allow_guests=True).client(0, userid)
    assert [client.ask(f"x{n}.y").errnum for n in range(3)] == [38, 38, 11]
    assert client.ask("x1.y").errnum == 38


def test_pending_requests_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """More at one neighbour than there is room left are refused with EAGAIN; after an answer there is room again."""
    monkeypatch.setattr("specwire.runtime.flux.tracking.MAX_TRACKED", 3)
    tree = Tree(2)
    tree.engines[0].add_service("work")
    client = tree.client(1)
    tags = [client.request("work.do", {}) for _ in range(3)]
    assert [[answer.errnum for answer in client.answers(tag)] for tag in tags] == [[], [], [11]]
    tree.settle()
    for request in [*tree.asked[0, "work"]]:
        tree.answer(0, "work", respond(request))
    tree.settle()
    assert [[answer.errnum for answer in client.answers(tag)] for tag in tags] == [[0], [0], [11]]
    tag = client.request("work.do", {})
    tree.settle()
    assert client.answers(tag) == []


@pytest.mark.parametrize("faked", [False, True])
def test_no_client_takes_the_room_of_others(monkeypatch: pytest.MonkeyPatch, faked: bool) -> None:
    """Of 8 places a client that asks and asks gets 4, the next 2, then 1, whatever routes it writes; nobody none.

    It is so at the broker where they come in, for what goes up, and for a service there.
    """
    monkeypatch.setattr("specwire.runtime.flux.tracking.MAX_TRACKED", 8)
    for service_at in (0, 2):
        tree = Tree(3, fanout=1)
        tree.engines[service_at].add_service("work")
        for places in (4, 2, 1):
            client = tree.client(2)
            refused = 0
            for tag in range(1, 9):
                routes = (f"route {tag}",) if faked else ()
                client.send(Request(routes, "work.do", b"{}\0", matchtag=tag))
                tree.settle()
                refused += [
                    message.errnum for message in client.received if isinstance(message, Response)
                ] == [11]
                client.received.clear()
            assert 8 - refused == places
        assert len(tree.asked[service_at, "work"]) == 7


def test_no_client_takes_the_room_of_others_further_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two clients of one broker share its parent's room as they share its own."""
    monkeypatch.setattr("specwire.runtime.flux.tracking.MAX_TRACKED", 8)
    tree = Tree(3, fanout=1)
    tree.engines[0].add_service("work")
    greedy, modest = tree.client(2), tree.client(2)
    tags = [greedy.request("work.do", {}) for _ in range(8)]
    tree.settle()
    tag = modest.request("work.do", {})
    tree.settle()
    assert [[answer.errnum for answer in greedy.answers(tag)] for tag in tags] == [[]] * 4 + [[11]] * 4
    assert modest.answers(tag) == []
    assert len(tree.asked[0, "work"]) == 5


def test_clients_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """One too many is told so by the octet after accept."""
    monkeypatch.setattr("specwire.runtime.flux.clients.MAX_CLIENTS", 1)
    tree = Tree(1)
    tree.client(0)
    assert tree.engines[0].authorise(OWNER) == 11
