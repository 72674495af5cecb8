"""What holds in every tree, whatever is sent and whoever dies, in any order of delivery between connections.

A story is a list of steps, each a kind and two numbers that choose among what there is. At its end all that is
owed is answered, everything on its way arrives, and then:

- every request without NORESPONSE, of a client that still lives, has exactly one final answer, and nothing after it;
- requests arrive at a service, and events at a subscriber, in the order sent; an event that is missing was reported;
- when the clients are gone, no broker waits for anything.
"""

from __future__ import annotations

import json
from collections import defaultdict
from itertools import pairwise
from typing import Literal

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from specwire.generated.flux import NODEID_ANY, Event, Request, Response
from specwire.runtime.flux.answering import end, fail, is_last, respond
from specwire.runtime.flux.config import Settings
from specwire.runtime.flux.events import EventGap
from specwire.runtime.flux.flags import NORESPONSE, STREAMING, UPSTREAM
from specwire.runtime.flux.wire import FLUX, LETTER, Wire
from specwire.runtime.flux.wires import WIRES
from tests.examples import examples
from tests.runtime.flux.tree import LocalClient, Tree

Step = Literal[
    "connect",
    "ask",
    "event",
    "deliver",
    "answer",
    "serve",
    "close",
    "kill",
    "start",
    "stop",
    "cut",
    "doubt",
    "rejoin",
    "wait",
]
Story = list[tuple[Step, int, int]]

CALM: tuple[Step, ...] = (
    "connect",
    *("ask",) * 5,
    "event",
    *("deliver",) * 3,
    "answer",
    "serve",
    "close",
    "wait",
)
WILD: tuple[Step, ...] = (*CALM, "kill", "start", "stop", "cut", "doubt", "rejoin")

NUMBERS = st.integers(0, 10_000)


def stories(kinds: tuple[Step, ...]) -> st.SearchStrategy[Story]:
    """Return stories of such steps."""
    return st.lists(st.tuples(st.sampled_from(kinds), NUMBERS, NUMBERS), min_size=20, max_size=100)


TOPICS = (
    "broker.ping",
    *("work.slow",) * 2,
    "mine.do",
    "nosuch.thing",
    "attr.nosuch",
    "kvs.get",
    *("overlay.health",) * 2,
)
FLAGS = (0, 0, STREAMING, STREAMING, UPSTREAM, UPSTREAM | STREAMING, NORESPONSE)


class Telling:
    """A story that is being told."""

    def __init__(self, size: int, fanout: int, *, rejoin: bool, wire: Wire) -> None:
        def speaking(given: Settings) -> Settings:
            return replace(given, wire=wire)

        self.tree = Tree(size, fanout, rejoin=rejoin, settings=speaking)
        self.number = 0
        self.killed = False
        self.numbered_anew = 0
        for engine in self.tree.engines.values():
            engine.add_service("work")
        for rank in range(size):
            self.connect(rank)
        self.tree.settle()

    def step(self, kind: Step, first: int, second: int) -> None:
        """Take one step."""
        getattr(self, kind)(first, second)

    def connect(self, first: int, _: int = 0) -> None:
        """Let a client come, which wants all events and serves ``mine`` if it is the first there."""
        if self.tree.engines:
            client = self.tree.client(self.rank(first))
            client.request("event.subscribe", {"topic": ""})
            client.request("service.add", {"service": "mine"})

    def ask(self, first: int, second: int) -> None:
        """Let a client send a request, with a number that grows."""
        client = self.client(first)
        if client is not None:
            nodeid = (NODEID_ANY, client.rank, *range(self.tree.shape.size + 2))[
                second % (self.tree.shape.size + 4)
            ]
            self.number += 1
            flags = FLAGS[second // 7 % len(FLAGS)]
            topic = TOPICS[first // 7 % len(TOPICS)]
            value = {"number": self.number, "key": "a", "from": client.uuid, "to": nodeid}
            client.request(topic, value, nodeid=nodeid, flags=flags)

    def event(self, first: int, second: int) -> None:
        """Let a client publish an event, in one of the two ways."""
        client = self.client(first)
        if client is not None and second % 2:
            client.send(Event(topic="news.item"))
        elif client is not None:
            client.request("event.publish", {"topic": "news.item"}, nodeid=0)

    def deliver(self, first: int, _: int) -> None:
        """Let one message arrive."""
        self.tree.step(first)

    def answer(self, first: int, second: int) -> None:
        """Let a service in Python answer its oldest request; sometimes once too often."""
        waiting = [key for key, asked in self.tree.asked.items() if asked]
        if not waiting:
            return
        rank, service = waiting[first % len(waiting)]
        request = self.tree.asked[rank, service][0]
        for response in answers_to(request, second):
            self.tree.answer(rank, service, response)
        if self.tree.asked[rank, service] and self.tree.asked[rank, service][0] is request:
            self.tree.asked[rank, service].popleft()

    def serve(self, first: int, second: int) -> None:
        """Let a client's service answer, sometimes once too often."""
        client = self.client(first)
        if client is None:
            return
        requests = client.requests()
        if requests:
            request = requests[second % len(requests)]
            for response in answers_to(request, second):
                client.send(response)

    def close(self, first: int, _: int) -> None:
        """Let a client go."""
        client = self.client(first)
        if client is not None:
            client.close()

    def kill(self, first: int, _: int) -> None:
        """Kill a broker."""
        if self.tree.engines:
            self.killed = True
            self.tree.kill(self.rank(first))

    def start(self, first: int, _: int) -> None:
        """Start a broker that was killed."""
        dead = [rank for rank in range(self.tree.shape.size) if rank not in self.tree.engines]
        if dead:
            rank = dead[first % len(dead)]
            self.numbered_anew += rank == 0
            self.tree.start(rank)
            self.tree.engines[rank].add_service("work")

    def stop(self, first: int, _: int) -> None:
        """Stop a broker in good order."""
        if self.tree.engines:
            self.killed = True
            rank = self.rank(first)
            self.tree.perform(rank, self.tree.engines[rank].stop(self.tree.now))

    def cut(self, first: int, _: int) -> None:
        """Let a broker lose its connection to its parent."""
        if self.tree.engines:
            self.killed = True
            rank = self.rank(first)
            if rank not in self.tree.apart:
                self.tree.perform(rank, self.tree.engines[rank].parent_gone("cut", self.tree.now))

    def doubt(self, first: int, second: int) -> None:
        """Let a parent give up a child that lives, and does not know."""
        if self.tree.engines:
            self.killed = True
            engine = self.tree.engines[self.rank(first)]
            children = [*engine.overlay.children.present]
            if children:
                child = children[second % len(children)]
                self.tree.perform(engine.rank, engine.child_gone(child, "in doubt", self.tree.now))

    def rejoin(self, first: int, _: int) -> None:
        """Let a broker that is alone join again."""
        apart = sorted(self.tree.apart & self.tree.engines.keys())
        if apart:
            self.tree.rejoin(apart[first % len(apart)])

    def recover(self) -> None:
        """Let all that are dead start, and all that are alone join again, as long as there are any."""
        for rank in range(self.tree.shape.size):
            if rank not in self.tree.engines:
                self.tree.start(rank)
        for _ in range(2 * self.tree.shape.size):
            self.tree.advance(6.0)
            for rank in sorted(self.tree.apart & self.tree.engines.keys()):
                self.tree.rejoin(rank)

    def wait(self, first: int, _: int) -> None:
        """Let time pass."""
        self.tree.advance(first % 40)

    def finish(self) -> None:
        """Let all that is owed be answered, and everything arrive."""
        self.tree.settle()
        self.tree.advance(6.0)  # somebody may be heard only now, and be told that it was given up
        while any(self.tree.asked.values()):
            self.answer(0, 1)
            self.tree.settle()
        for client in [*self.tree.clients.values()]:
            for request in client.requests():
                client.send(end(request) if request.flags & STREAMING else respond(request))
        self.tree.settle()

    def rank(self, number: int) -> int:
        """Choose a broker that lives."""
        alive = sorted(self.tree.engines)
        return alive[number % len(alive)]

    def client(self, number: int) -> LocalClient | None:
        """Choose a client that is there."""
        there = [*self.tree.clients.values()]
        return there[number % len(there)] if there else None


def answers_to(request: Request, number: int) -> list[Response]:
    """Return what a service says to a request: all of it, or a part, or more than it may."""
    if request.flags & STREAMING:
        return [
            [respond(request, b"{}\0"), respond(request, b"{}\0"), end(request)],
            [respond(request, b"{}\0"), end(request), respond(request, b"{}\0")],
            [fail(request, 22, "no"), end(request)],
        ][number % 3]
    return [[respond(request)], [respond(request), respond(request)], [fail(request, 22), respond(request)]][
        number % 3
    ]


def tell(story: Story, size: int, fanout: int, *, rejoin: bool = True, wire: Wire = FLUX) -> Telling:
    """Tell a story to its end, and look at what must be so."""
    telling = Telling(size, fanout, rejoin=rejoin, wire=wire)
    for kind, first, second in story:
        telling.step(kind, first, second)
    telling.finish()
    one_final_answer(telling.tree)
    requests_in_order(telling.tree)
    answers_in_order(telling.tree)
    events_in_order(telling)
    for client in [*telling.tree.clients.values()]:
        client.close()
    telling.tree.settle()
    assert telling.tree.pending() == {}
    assert not any(telling.tree.asked.values())
    whole_again(telling)
    return telling


def whole_again(telling: Telling) -> None:
    """Whatever happened, a tree whose brokers are started and join again is whole, and all reach all."""
    telling.recover()
    tree = telling.tree
    assert {engine.overlay.status.word for engine in tree.engines.values()} == {"full"}
    for start in range(tree.shape.size):
        client = tree.client(start)
        for goal in range(tree.shape.size):
            assert client.ask("broker.ping", {}, nodeid=goal).errnum == 0, (start, goal)
        client.close()
    tree.settle()
    assert tree.pending() == {}


def one_final_answer(tree: Tree) -> None:
    """Each request of a client that is there has the answers that it must have."""
    for client, request, final in tree.endings():
        answers = client.answers(request.matchtag)
        if request.flags & NORESPONSE:
            assert answers == [], request
        elif request.topic == "overlay.health" and request.flags & STREAMING and not final:
            assert answers, request  # a stream that goes on
        else:
            assert len(final) == 1, (client.rank, request, answers)
            assert is_last(request.flags, answers[-1]), "something came after the end"


def requests_in_order(tree: Tree) -> None:
    """A service gets the requests of one client to one goal in the order sent."""
    numbers: dict[tuple[int, str, int], list[int]] = defaultdict(list)
    for rank, _, request in tree.arrived:
        value = json.loads((request.payload or b"{}\0")[:-1])
        numbers[rank, value["from"], value["to"]].append(value["number"])
    for got in numbers.values():
        assert got == sorted(set(got))


def answers_in_order(tree: Tree) -> None:
    """What one broker answers at once comes back in the order in which it was asked."""
    for client in tree.clients.values():
        matchtags: dict[tuple[int, int], list[int]] = defaultdict(list)
        for message in client.received:
            if isinstance(message, Response) and message.topic == "broker.ping" and not message.errnum:
                request = client.sent[message.matchtag]
                matchtags[request.nodeid, request.flags & UPSTREAM].append(message.matchtag)
        for got in matchtags.values():
            assert got == sorted(got)


def events_in_order(telling: Telling) -> None:
    """Numbers only grow; where one is missing, that broker has reported it; without a kill none is missing.

    They begin again with 1 where rank 0 was started again.
    """
    gaps: dict[int, set[int]] = defaultdict(set)
    for rank, event in telling.tree.reports:
        if isinstance(event, EventGap):
            gaps[rank].update(range(event.first, event.last + 1))
    assert telling.killed or not gaps
    for client in telling.tree.clients.values():
        sequences = [event.sequence for event in client.events()]
        assert sum(after <= before for before, after in pairwise(sequences)) <= telling.numbered_anew
        for before, after in pairwise(sequences):
            assert set(range(before + 1, after)) <= gaps[client.rank]


SHAPES = {"size": st.integers(1, 9), "fanout": st.integers(0, 3)}


@settings(max_examples=examples(40), suppress_health_check=[HealthCheck.too_slow])
@given(story=stories(CALM), **SHAPES)
def test_trees_where_nobody_dies(story: Story, size: int, fanout: int) -> None:
    """Any traffic, any order of delivery."""
    telling = tell(story, size, fanout)
    assert all(engine.overlay.status.word == "full" for engine in telling.tree.engines.values())


@settings(max_examples=examples(80), suppress_health_check=[HealthCheck.too_slow])
@given(story=stories(WILD), **SHAPES)
@example(
    story=[("ask", 0, 0), ("kill", 0, 0), ("start", 0, 0), ("ask", 1, 4), ("deliver", 3, 0)], size=4, fanout=1
)
def test_trees_where_brokers_are_killed(story: Story, size: int, fanout: int) -> None:
    """Brokers are killed and started again, and those below join again under new uuids."""
    tell(story, size, fanout)


@settings(max_examples=examples(40), suppress_health_check=[HealthCheck.too_slow])
@given(story=stories(WILD), **SHAPES)
def test_trees_where_nobody_joins_again(story: Story, size: int, fanout: int) -> None:
    """Brokers that have lost their parent stay alone, and still answer their own clients."""
    tell(story, size, fanout, rejoin=False)


OTHERS = [pytest.param(WIRES[name], id=name) for name in ("cmb1", "cmb1_json")] + [
    pytest.param(LETTER, id="letter")
]


@pytest.mark.parametrize("wire", OTHERS)
@settings(max_examples=examples(30), suppress_health_check=[HealthCheck.too_slow])
@given(story=stories(WILD), **SHAPES)
def test_trees_hold_on_every_wire(wire: Wire, story: Story, size: int, fanout: int) -> None:
    """The same engines, and every message on every connection in another edition."""
    tell(story, size, fanout, wire=wire)
