"""What the page shows of each server."""

from __future__ import annotations

import msgspec
import pytest

from specwire.runtime.flux.survey import Branch
from specwire.runtime.norfab.serve.status import ServiceStatus
from specwire.runtime.observe import filemq, flux, norfab, relay
from specwire.runtime.observe.view import LONGEST_WORD, MAX_BRANCHES, MAX_ROWS, Node, View, word
from tests.runtime.observe import statuses


def outline(node: Node | None) -> dict[str, object]:
    """Return the names in a tree, as nested dictionaries."""
    assert node is not None
    return {child.name: outline(child) for child in node.children}


def gauges(view: View) -> dict[str, object]:
    """Return the big numbers by label."""
    return {fact.label: fact.value for fact in view.gauges}


def test_a_filemq_server_is_publications_with_their_clients() -> None:
    view = filemq.view_server(statuses.FILEMQ_SERVER)
    assert (view.title, view.name, view.health.word) == ("FILEMQ server", "tcp://127.0.0.1:5670", "serving")
    assert outline(view.tree) == {"/docs": {"aabb": {}, "ccdd": {}}, "/data": {"ccdd": {}}}
    assert gauges(view)["changes to come"] == 7
    (first, second) = view.tables[0].rows
    assert first == ("aabb", "ann", "/docs", "/docs/a", 0.25, 50.0, 3, 100, 1000, 12.0)
    assert second == ("ccdd", "", "/", "", None, None, 4, 50, 1500, 2.0)
    assert view.notices is not None and view.notices[0].text == "/../x of aabb: leaves the folder"


def test_a_subscriber_tells_how_it_is_connected() -> None:
    view = filemq.view_peer(statuses.FILEMQ_SUBSCRIBER)
    assert (view.health.word, view.health.tone) == ("open", "good")
    assert view.tables[0].rows == (("/docs/a", 0.25, 120, 10.0),)


def test_a_flux_broker_shows_its_children_and_what_is_below_them_once_it_has_asked() -> None:
    view = flux.view_broker(statuses.FLUX)
    assert (view.name, view.health.word, view.health.tone) == ("rank 1 of 7", "degraded", "fair")
    assert outline(view.tree) == {"rank 3": {}, "rank 4": {}}
    found = Branch(
        1,
        "node1",
        "degraded",
        children=[
            Branch(3, "node3", "full", children=[Branch(7, "node7", "full")]),
            Branch(4, "node4", "lost", error="no answer"),
        ],
    )
    asked = flux.view_broker(statuses.FLUX, found)
    assert outline(asked.tree) == {"rank 3": {"rank 7": {}}, "rank 4": {}}
    assert asked.tree is not None and asked.tree.children[1].note == "node4, lost: no answer"


@pytest.mark.parametrize(("phase", "tone"), [("joining", "fair"), ("apart", "bad")])
def test_a_flux_broker_that_is_not_in_the_tree_says_so(phase: str, tone: str) -> None:
    view = flux.view_broker(msgspec.structs.replace(statuses.FLUX, phase=phase))
    assert (view.health.word, view.health.tone) == (phase, tone)


def test_a_norfab_broker_is_services_with_their_workers() -> None:
    view = norfab.view_broker(statuses.NORFAB_BROKER)
    assert outline(view.tree) == {"lab": {"w1": {}, "w2": {}}, "edge": {}}
    assert (view.health.word, view.health.tone) == ("jobs wait for 1 service", "fair")
    assert (gauges(view)["wait for a service"], gauges(view)["wait for a worker"]) == (6, 1)
    failing = msgspec.structs.replace(statuses.NORFAB_BROKER.counters, store_failures=1)
    broken = norfab.view_broker(msgspec.structs.replace(statuses.NORFAB_BROKER, counters=failing))
    assert (broken.health.word, broken.health.tone) == ("records could not be kept", "fair")


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({}, "registered"),
        ({"registered_s": None}, "not connected"),
        ({"stopping": True}, "stopping"),
        ({"store": "disk full"}, "the disk fails, and jobs are refused: disk full"),
    ],
)
def test_a_norfab_worker_says_whether_it_has_a_broker(changes: dict[str, object], told: str) -> None:
    assert norfab.view_worker(msgspec.structs.replace(statuses.NORFAB_WORKER, **changes)).health.word == told


def test_a_capture_with_holes_says_so() -> None:
    view = relay.view_proxy(statuses.RELAY, statuses.PROXIED, statuses.TAPS, "norfab", 1.0)
    assert (view.name, view.health.word) == ("tcp://127.0.0.1:5671", "the capture has holes")
    assert outline(view.tree) == {"tcp://127.0.0.1:5670": {}}
    assert view.tables[0].rows == (("S", 6), ("C", 4))
    whole = relay.view_proxy(statuses.RELAY, statuses.PROXIED, (), "norfab", 1.0)
    assert whole.health.word == "recording"


def test_a_bridge_tells_what_could_not_be_said() -> None:
    view = relay.view_bridge(statuses.RELAY, statuses.BRIDGED, "cmb1, flux", 1.0)
    assert view.tables[0].rows == (("no such flag", 2),)
    assert gauges(view)["could not be said"] == 2


def test_what_is_shown_is_bounded_and_counted() -> None:
    many = msgspec.structs.replace(
        statuses.NORFAB_BROKER,
        services=tuple(ServiceStatus(f"s{number}", 0, 0) for number in range(5000)),
        workers=statuses.NORFAB_BROKER.workers * 500,
    )
    view = norfab.view_broker(many)
    assert view.tree is not None and (len(view.tree.children), view.tree.more) == (
        MAX_BRANCHES,
        5000 - MAX_BRANCHES,
    )
    assert (len(view.tables[0].rows), view.tables[0].total) == (MAX_ROWS, 1000)


def test_a_word_from_the_wire_is_cut_and_harmless() -> None:
    assert word("a\x1b[2J\u202eb\ud800") == "a\\x1b[2J\\u202eb\\ud800"
    assert word("x" * 10_000) == "x" * LONGEST_WORD + "…"


def test_whatever_the_names_are_a_view_is_json() -> None:
    """A name that is no text of UTF-8 would end the page."""
    bad = msgspec.structs.replace(
        statuses.NORFAB_BROKER,
        services=(ServiceStatus("\ud800", 1, 1),),
        workers=(
            msgspec.structs.replace(statuses.NORFAB_BROKER.workers[0], name="\udfff", service="\ud800"),
        ),
        folder="\udc80",
    )
    assert b"ud800" in msgspec.json.encode(norfab.view_broker(bad))
