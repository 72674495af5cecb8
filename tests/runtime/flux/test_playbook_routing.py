"""Requests and responses: where they go, one sentence of a specification or of the measured facts a test."""

from __future__ import annotations

import msgspec
import pytest

from specwire.generated.flux import NODEID_ANY, Request, Response
from specwire.runtime.flux.actions import Report, ToChild, ToClient, ToParent
from specwire.runtime.flux.answering import end, fail, pack, respond, unpack_object
from specwire.runtime.flux.broker import BrokerEngine
from specwire.runtime.flux.config import Settings
from specwire.runtime.flux.events import Dropped
from specwire.runtime.flux.flags import NORESPONSE, STREAMING, UPSTREAM
from specwire.runtime.flux.topology import Tree as Shape
from specwire.runtime.flux.wire import LETTER, FluxWire, Rules
from tests.runtime.flux.tree import LocalClient, Tree


def attribute(client: LocalClient, nodeid: int = NODEID_ANY, flags: int = 0) -> str:
    """Return the rank of the broker that answers."""
    answer = client.ask("attr.get", {"name": "rank"}, nodeid=nodeid, flags=flags)
    assert answer.errnum == 0, answer
    return str(unpack_object(answer.payload)["value"])


# --- Flux v1, "Request Routing"


def test_any_is_matched_with_a_local_service_first() -> None:
    """If nodeid is nodeid-any, the broker SHALL attempt to match a locally-registered service."""
    assert attribute(Tree(7).client(5)) == "5"


def test_any_goes_up_until_a_service_matches() -> None:
    """Otherwise, it SHALL be routed to the next upstream broker peer, which does the same."""
    tree = Tree(7)
    tree.engines[2].add_service("work")
    client = tree.client(5)
    client.request("work.do", {})
    tree.settle()
    assert [(rank, service) for rank, service, _ in tree.arrived] == [(2, "work")]


def test_any_without_a_service_is_answered_by_the_root() -> None:
    """If the message reaches the root broker without a match, that broker SHALL generate the error."""
    answer = Tree(7).client(5).ask("nosuch.method", {})
    assert (answer.errnum, answer.payload) == (38, b"No service matching nosuch.method is registered\0")


def test_letter_has_the_number_of_the_specification() -> None:
    """POSIX error number 39, as the specification writes it."""
    tree = Tree(3, settings=lambda given: msgspec.structs.replace(given, wire=LETTER))
    client = tree.client(2)
    assert client.ask("nosuch.method", {}).errnum == 39
    assert client.ask("attr.nosuch", {}).errnum == 39


@pytest.mark.parametrize("goal", range(9))
def test_rank_is_reached_by_the_tree(goal: int) -> None:
    """The nodeid SHALL be interpreted as the destination broker rank."""
    tree = Tree(9)
    for start in range(9):
        assert attribute(tree.client(start), goal) == str(goal)
    assert tree.pending() == {}


def test_service_of_another_rank_is_not_looked_for() -> None:
    """On the destination, a request without a local match is answered with the error there."""
    tree = Tree(3)
    tree.engines[0].add_service("work")
    answer = tree.client(0).ask("work.do", {}, nodeid=1)
    assert (answer.errnum, answer.rolemask) == (38, 1)
    assert tree.arrived == []


def test_upstream_passes_the_sender_over() -> None:
    """The receiving broker SHALL NOT attempt to match a service on the sender's rank."""
    tree = Tree(7)
    assert attribute(tree.client(5), 5, UPSTREAM) == "2"
    assert attribute(tree.client(2), 2, UPSTREAM) == "0"


def test_upstream_at_the_root_is_unreachable() -> None:
    """UPSTREAM at the root with its own nodeid: 113."""
    assert Tree(3).client(0).ask("attr.get", {"name": "rank"}, nodeid=0, flags=UPSTREAM).errnum == 113


@pytest.mark.parametrize("nodeid", [7, 0xFFFFFFFE])
@pytest.mark.parametrize("start", [0, 6])
def test_rank_that_is_not_there(nodeid: int, start: int) -> None:
    """nodeid out of range, or 0xFFFFFFFE: 113, no payload."""
    answer = Tree(7).client(start).ask("broker.ping", {}, nodeid=nodeid)
    assert (answer.errnum, answer.payload) == (113, None)


def test_noresponse_is_silent() -> None:
    """If the header noresponse flag is set, responses SHALL be suppressed: also for an unknown service."""
    tree = Tree(3)
    client = tree.client(2)
    for topic, nodeid in [("broker.ping", 0), ("nosuch.x", 0), ("nosuch.x", NODEID_ANY), ("broker.ping", 99)]:
        client.request(topic, {}, nodeid=nodeid, flags=NORESPONSE)
        client.request(topic, {}, nodeid=nodeid, flags=NORESPONSE | STREAMING)
    tree.settle()
    assert client.received == []
    assert tree.pending() == {}


# --- routes


def test_one_route_is_added_for_each_socket() -> None:
    """Going up the ROUTER adds the child's uuid; going down a broker adds its own."""
    tree = Tree(7)
    client = tree.client(3)
    answer = unpack_object(client.ask("broker.ping", {}, nodeid=2).payload)
    names = {engine.uuid[:8]: rank for rank, engine in tree.engines.items()}
    hops = str(answer["route"]).split("!")
    assert hops[:2] == [client.uuid[:8], tree.engines[3].clients.connector[:8]]
    assert [names[hop] for hop in hops[2:]] == [3, 1, 0, 2]


def test_service_client_gets_the_whole_stack_and_echoes_it() -> None:
    """Requests reach a service client with the whole route stack, top first."""
    tree = Tree(7)
    server, client = tree.client(2), tree.client(3)
    assert server.ask("service.add", {"service": "mine"}).errnum == 0
    matchtag = client.request("mine.do", {"a": 1}, nodeid=2)
    tree.settle()
    (request,) = server.requests()
    engines = tree.engines
    assert request.routes == (
        engines[0].uuid,
        engines[1].uuid,
        engines[3].uuid,
        engines[3].clients.connector,
        client.uuid,
    )
    server.send(respond(request, pack({"b": 2})))
    tree.settle()
    (answer,) = client.answers(matchtag)
    assert (answer.routes, answer.payload, answer.topic) == ((), b'{"b":2}\0', "mine.do")


def test_second_answer_goes_nowhere() -> None:
    """No request is ever answered twice."""
    tree = Tree(3)
    server, client = tree.client(0), tree.client(2)
    server.ask("service.add", {"service": "mine"})
    matchtag = client.request("mine.do", {})
    tree.settle()
    (request,) = server.requests()
    for response in (respond(request), respond(request), fail(request, 22)):
        server.send(response)
    tree.settle()
    assert [answer.errnum for answer in client.answers(matchtag)] == [0]
    assert [event.reason for event in tree.reported(Dropped)] == ["nobody awaits it"] * 2


def test_equal_matchtags_get_an_answer_each() -> None:
    """Matchtag 0 means none: two such requests are two, and both are answered."""
    tree = Tree(3)
    client = tree.client(2)
    request = Request(topic="broker.ping", payload=b"{}\0", nodeid=0)
    client.send(request)
    client.send(request)
    tree.settle()
    assert len(client.received) == 2
    assert tree.pending() == {}


def test_stream_ends_once() -> None:
    """Tracking ends at a non-streaming response or a streaming error; what follows is dropped."""
    tree = Tree(3)
    tree.engines[0].add_service("work")
    client = tree.client(2)
    matchtag = client.request("work.stream", {}, flags=STREAMING)
    tree.settle()
    ((_, _, request),) = tree.arrived
    for response in (respond(request, b"1\0"), respond(request, b"2\0"), end(request), respond(request)):
        tree.answer(0, "work", response)
    tree.settle()
    assert [answer.errnum for answer in client.answers(matchtag)] == [0, 0, 61]
    assert tree.pending() == {}


def test_unmatched_response_of_a_child_is_dropped() -> None:
    """A response for nobody is dropped and counted."""
    tree = Tree(3)
    engine = tree.engines[0]
    stray = Response(routes=(engine.uuid, "nobody"), topic="x.y", matchtag=9)
    (report,) = engine.from_child(tree.engines[1].uuid, stray, 0.0)
    assert report == Report(Dropped("response", "child", "nobody awaits it"))
    (report,) = engine.from_child(tree.engines[1].uuid, stray.replace(routes=("else",)), 0.0)
    assert isinstance(report, Report)
    assert engine.counters.dropped == 2


def test_request_that_would_go_back_is_unreachable() -> None:
    """Brokers that disagree about the tree: the request does not go in circles."""
    engine = BrokerEngine(Settings(tree=Shape(3, 1)), 1, "middle", lambda: "connector")
    engine.start(0.0)
    engine.from_parent(Response(topic="overlay.hello", payload=pack({"uuid": "root"})), 0.0)
    request = Request(routes=("root", "far"), topic="broker.ping", nodeid=0, matchtag=1)
    (action,) = engine.from_parent(request, 0.0)
    assert isinstance(action, ToParent)
    assert isinstance(action.message, Response)
    assert action.message.errnum == 113


def test_routes_are_bounded() -> None:
    """A stack that no way through the tree can have is answered with EPROTO."""
    client = Tree(3).client(0)
    client.send(Request(routes=tuple(f"r{n}" for n in range(1000)), topic="broker.ping", payload=b"{}\0"))
    (answer,) = client.received
    assert isinstance(answer, Response)
    assert (answer.errnum, len(answer.routes or ())) == (71, 1000)


def test_client_does_not_get_its_own_request_by_cmb1() -> None:
    """CMB1: to a module that matches, if the sender is not the same module; else to the parent."""

    class Older(FluxWire):
        rules = Rules(own_service_skipped=True)

    wire = Older()
    wire.rules = Rules(own_service_skipped=True)
    tree = Tree(3, settings=lambda given: msgspec.structs.replace(given, wire=wire))
    tree.engines[0].add_service("mine")
    server, other = tree.client(2), tree.client(2)
    server.ask("service.add", {"service": "mine"})
    server.request("mine.do", {"by": "itself"})
    other.request("mine.do", {"by": "other"})
    tree.settle()
    assert [request.payload for request in server.requests()] == [b'{"by":"other"}\0']
    assert [request.payload for _, _, request in tree.arrived] == [b'{"by":"itself"}\0']


def test_client_gets_its_own_request_as_deployed_brokers_do_it() -> None:
    """Flux-core does this only with the UPSTREAM flag."""
    tree = Tree(3)
    server = tree.client(2)
    server.ask("service.add", {"service": "mine"})
    server.request("mine.do", {})
    tree.settle()
    assert len(server.requests()) == 1


# --- what a lost way does


def test_order_between_two_endpoints() -> None:
    """Messages between any pair of endpoints are received in transmission order."""
    tree = Tree(15)
    tree.engines[14].add_service("work")
    client = tree.client(7)
    for number in range(50):
        client.request("work.do", {"n": number}, nodeid=14)
    tree.settle()
    assert [request.payload for _, _, request in tree.arrived] == [pack({"n": n}) for n in range(50)]


def test_stop_is_told_to_those_who_work_for_the_lost() -> None:
    """A killed broker's streams elsewhere end: each service gets ``<service>.disconnect`` once for each sender."""
    tree = Tree(3, 1)
    tree.engines[0].add_service("work")
    client = tree.client(2)
    for _ in range(2):
        client.request("work.stream", {}, flags=STREAMING)
    client.request("overlay.health", nodeid=0, flags=STREAMING)
    tree.settle()
    assert len(tree.asked[0, "work"]) == 2
    tree.kill(2)
    tree.settle()
    assert not tree.asked[0, "work"]
    assert tree.pending() == {}


def test_matchtag_0_too_is_answered_when_a_child_is_lost() -> None:
    """Every request without noresponse gets exactly one final answer."""
    tree = Tree(3, 1)
    tree.engines[2].add_service("work")
    client = tree.client(0)
    client.send(Request(topic="work.do", nodeid=2))
    tree.settle()
    tree.kill(1)
    tree.settle()
    (answer,) = client.received
    assert isinstance(answer, Response)
    assert (answer.errnum, answer.matchtag) == (113, 0)


def test_actions_name_the_neighbour_and_keep_it_out_of_the_routes() -> None:
    """Downward the child's uuid is the routing id, which ROUTER takes: it never gets into the message."""
    engine = BrokerEngine(Settings(tree=Shape(3, 1), owner=7), 0, "root", lambda: "connector")
    engine.start(0.0)
    hello = pack({"rank": 1, "version": 22528, "uuid": "child", "status": 1, "hostname": "vm"})
    engine.from_child("child", Request(topic="overlay.hello", payload=hello, rolemask=1), 0.0)
    engine.accept_client("client", 7, 0.0)
    (action,) = engine.from_client("client", Request(topic="broker.ping", nodeid=2, matchtag=4), 0.0)
    assert action == ToChild(
        "child",
        Request(
            routes=("root", "connector", "client"),
            topic="broker.ping",
            nodeid=2,
            matchtag=4,
            userid=7,
            rolemask=5,
        ),
    )
    answer = Response(routes=("root", "connector", "client"), topic="broker.ping", matchtag=4, rolemask=5)
    (action,) = engine.from_child("child", answer, 0.0)
    assert action == ToClient("client", answer.replace(routes=(), rolemask=1))
