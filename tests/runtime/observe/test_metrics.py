"""The measures of every server: what they say, how they are named, and that the page about them lists them all."""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec
import pytest

from specwire.runtime.norfab.serve.status import ServiceStatus
from specwire.runtime.norfab.serve.status import WorkerStatus as RegisteredWorker
from specwire.runtime.observe import flux, norfab, relay
from specwire.runtime.observe.exposition import Exposition
from specwire.runtime.observe.families import MAX_VALUES, Family
from specwire.runtime.observe.filemq import measure_peer
from specwire.runtime.observe.zre import measure_zre
from tests.house.repository import ROOT
from tests.runtime.observe import statuses

MEASURED: Mapping[str, list[Family]] = {
    "filemq server": measure_peer(statuses.FILEMQ_SERVER),
    "filemq subscriber": measure_peer(statuses.FILEMQ_SUBSCRIBER),
    "zre peer": measure_zre(statuses.ZRE),
    "flux broker": flux.measure_broker(statuses.FLUX),
    "norfab broker": norfab.measure_broker(statuses.NORFAB_BROKER),
    "norfab worker": norfab.measure_worker(statuses.NORFAB_WORKER),
    "capture proxy": relay.measure_proxy(
        statuses.RELAY, statuses.PROXIED, statuses.TAPS, "norfab, norfab_ascii", 2.0
    ),
    "bridge": relay.measure_bridge(statuses.RELAY, statuses.BRIDGED, "cmb1, flux", 2.0),
}
EVERYWHERE = "specwire_event_loop_lag_seconds"
"""The one that `Showing` adds."""

UNITS = ("octets", "ms", "kb", "size", "minutes", "percent")
"""What a name does not say: Prometheus wants base units, by the names ``bytes``, ``seconds`` and ``ratio``."""


def values(server: str) -> dict[str, float | dict[tuple[str, ...], float]]:
    """Return the value of each family; by labels, where it has some."""
    return {
        family.name: family.samples if family.labels else family.samples[()] for family in MEASURED[server]
    }


def test_a_filemq_server_tells_what_its_status_says() -> None:
    told = values("filemq server")
    assert told["specwire_info"] == {("filemq-server", "filemq", told_version()): 1}
    assert told["specwire_uptime_seconds"] == 61.5
    assert told["specwire_filemq_published_files"] == {("/docs",): 40, ("/data",): 2}
    assert told["specwire_filemq_published_bytes"] == {("/docs",): 4000, ("/data",): 9000}
    assert told["specwire_filemq_clients"] == 2
    assert told["specwire_filemq_credit_bytes"] == 150
    assert told["specwire_filemq_queued_changes"] == 7
    assert told["specwire_filemq_files_under_way"] == 1
    assert told["specwire_filemq_messages"] == {("in",): 7, ("out",): 30}
    assert told["specwire_filemq_message_bytes"] == {("in",): 700, ("out",): 3000}
    assert told["specwire_filemq_commands"] == {
        ("in", "OHAI"): 3,
        ("in", "NOM"): 4,
        ("out", "CHEEZBURGER"): 25,
    }
    assert (told["specwire_filemq_content_bytes"], told["specwire_filemq_files"]) == (2500, 5)
    assert (told["specwire_filemq_refusals"], told["specwire_filemq_malformed_messages"]) == (2, 1)
    assert told["specwire_capture_messages_dropped"] == {("tap-1",): 2}


def test_a_subscriber_tells_of_its_connection() -> None:
    told = values("filemq subscriber")
    assert told["specwire_filemq_connection"] == {
        ("opening",): 0,
        ("open",): 1,
        ("waiting",): 0,
        ("ended",): 0,
    }
    assert (told["specwire_filemq_held_files"], told["specwire_filemq_pending_bytes"]) == (6, 11)
    assert "specwire_capture_messages_dropped" not in told, "nothing is captured"


def test_helps_of_filemq_name_what_each_does() -> None:
    """A server sends and withdraws; a subscriber receives and deletes."""
    helps = {name: {one.name: one.help for one in MEASURED[name]} for name in MEASURED}
    for name, server, subscriber in (
        ("chunks", "Chunks of content that were sent.", "Chunks of content that were received."),
        ("content_bytes", "Content of files that was sent.", "Content of files that was received."),
        ("files", "Files that were sent, whole.", "Files that were received, whole."),
        ("deletions", "Files that were withdrawn.", "Files that were deleted."),
        ("files_under_way", "Files of which a part has been sent.", "Files of which a part has come."),
    ):
        assert helps["filemq server"][f"specwire_filemq_{name}"] == server
        assert helps["filemq subscriber"][f"specwire_filemq_{name}"] == subscriber


def test_a_server_without_clients_measures_zeros() -> None:
    idle = msgspec.structs.replace(statuses.FILEMQ_SERVER, clients=())
    samples = {family.name: family.samples for family in measure_peer(idle)}
    for name in ("clients", "subscriptions", "credit_bytes", "queued_changes", "files_under_way"):
        assert samples[f"specwire_filemq_{name}"] == {(): 0}


def test_a_zre_peer_measures_its_network_and_its_host() -> None:
    told = values("zre peer")
    assert told["specwire_info"] == {("zre-peer", "zre", told_version()): 1}
    assert (told["specwire_uptime_seconds"], told["specwire_zre_peers"]) == (61.5, 2)
    assert (told["specwire_zre_dialed_endpoints"], told["specwire_zre_connections"]) == (1, 3)
    assert told["specwire_zre_messages"] == {("in",): 20, ("out",): 30}
    assert told["specwire_zre_message_bytes"] == {("in",): 2000, ("out",): 3000}
    assert (told["specwire_zre_refused_clients"], told["specwire_zre_lost_peers"]) == (2, 4)
    assert told["specwire_capture_messages_recorded"] == {("tap-1",): 10}


def test_a_flux_broker_tells_of_its_place_and_its_children() -> None:
    told = values("flux broker")
    assert (
        told["specwire_flux_rank"],
        told["specwire_flux_instance_brokers"],
        told["specwire_flux_children"],
    ) == (
        1,
        7,
        1,
    )
    phases = told["specwire_flux_phase"]
    assert isinstance(phases, dict) and [name for (name,), value in phases.items() if value] == ["online"]
    subtree = told["specwire_flux_subtree"]
    assert isinstance(subtree, dict) and [name for (name,), value in subtree.items() if value] == ["degraded"]
    assert told["specwire_flux_child_present"] == {("3",): 1, ("4",): 0}
    assert told["specwire_flux_child_torpid"] == {("3",): 0, ("4",): 1}
    assert told["specwire_flux_child_idle_seconds"] == {("3",): 0.5, ("4",): 70.0}
    assert told["specwire_flux_child_pending_requests"] == {("3",): 2, ("4",): 0}
    assert told["specwire_flux_messages"] == {("request",): 10, ("response",): 9, ("event",): 8}
    assert told["specwire_flux_client_messages"] == {("in",): 100, ("out",): 90}
    assert [
        told[f"specwire_flux_{name}"]
        for name in ("accepted_clients", "denied_clients", "malformed_clients", "slow_clients", "lost_events")
    ] == [5, 1, 3, 4, 4]


def test_a_norfab_broker_tells_of_its_queues() -> None:
    told = values("norfab broker")
    assert told["specwire_norfab_open_jobs"] == 9
    assert told["specwire_norfab_records_waiting_for_disk"] == 1
    assert told["specwire_norfab_workers"] == {("lab",): 2, ("edge",): 0}
    assert told["specwire_norfab_waiting_jobs"] == {("lab",): 0, ("edge",): 6}
    assert told["specwire_norfab_given_jobs"] == {("lab",): 4}
    assert told["specwire_norfab_queued_jobs"] == {("lab",): 1}
    assert told["specwire_norfab_accepted_jobs"] == 5
    assert told["specwire_norfab_dropped_messages"] == {("late",): 15}


def test_a_norfab_worker_tells_of_its_jobs() -> None:
    told = values("norfab worker")
    assert told["specwire_norfab_worker_registered"] == 1
    assert told["specwire_norfab_worker_jobs"] == {("running",): 1, ("waiting",): 3, ("held",): 4}
    assert told["specwire_norfab_worker_ended_jobs"] == {("completed",): 20, ("failed",): 2}


def test_durations_are_histograms() -> None:
    """0.01 s is at most 0.01 s; 9,000 s are above every limit; a sum and a number come with them."""
    text = Exposition(lambda: MEASURED["norfab broker"]).write("")[0].decode()
    name = "specwire_norfab_part_duration_seconds"
    shown = dict(re.findall(rf'^{name}_bucket{{le="([^"]+)",service="lab"}} (\S+)$', text, re.MULTILINE))
    assert {limit: shown[limit] for limit in ("0.01", "0.025", "30.0", "60.0", "7200.0", "+Inf")} == {
        "0.01": "1.0",
        "0.025": "2.0",
        "30.0": "2.0",
        "60.0": "3.0",
        "7200.0": "3.0",
        "+Inf": "4.0",
    }
    assert f'{name}_count{{service="lab"}} 4.0' in text and f'{name}_sum{{service="lab"}} 9040.03' in text


def test_what_stands_between_two_peers_tells_what_passes() -> None:
    told = values("capture proxy")
    assert told["specwire_proxy_messages"] == {("C",): 4, ("S",): 6}
    assert (told["specwire_proxy_message_bytes"], told["specwire_proxy_unread_connections"]) == (500, 1)
    assert (told["specwire_relay_connections"], told["specwire_relay_refused_connections"]) == (7, 2)
    assert told["specwire_capture_messages_written"] == {("tap-1",): 8}
    told = values("bridge")
    assert told["specwire_bridge_messages"] == {("listener",): 5, ("opener",): 3}
    assert told["specwire_bridge_unsaid_messages"] == 2


def test_services_invented_by_the_thousand_are_not_as_many_series() -> None:
    """Their number is told, and their sums are in totals; not each by its name."""
    many = msgspec.structs.replace(
        statuses.NORFAB_BROKER,
        services=tuple(ServiceStatus(f"s{number}", 1, 1) for number in range(5000)),
        workers=tuple(RegisteredWorker(f"w{n}", f"s{n}", 1, 1, 0, 0.0, 0.0) for n in range(5000)),
    )
    told = {family.name: family for family in norfab.measure_broker(many)}
    assert all(len(family.samples) <= MAX_VALUES for family in told.values())
    assert told["specwire_norfab_services"].samples == {(): 5000}
    assert told["specwire_norfab_registered_workers"].samples == {(): 5000}


@pytest.mark.parametrize("server", MEASURED)
def test_names_are_as_prometheus_wants_them(server: str) -> None:
    for family in MEASURED[server]:
        assert re.fullmatch(r"specwire(_[a-z]+)+", family.name), family.name
        assert not family.name.endswith("_total"), "the library adds it"
        assert not any(re.search(rf"_{unit}(_|$)", family.name) for unit in UNITS), family.name
        assert family.help.endswith("."), family.help


def test_the_page_about_them_lists_each_with_its_kind() -> None:
    """docs/reference/observability.md has a row for each, and no other."""
    text = (ROOT / "docs/reference/observability.md").read_text(encoding="utf-8")
    listed = dict(
        re.findall(
            r"^\| `(specwire_\w+)(?:\{[\w, ]+\})?` \| (counter|gauge|histogram) \|", text, re.MULTILINE
        )
    )
    expected = {
        f"{family.name}_total" if family.kind == "counter" else family.name: family.kind
        for families in MEASURED.values()
        for family in families
    }
    assert listed == {**expected, EVERYWHERE: "gauge"}


def told_version() -> str:
    """Return the release that runs."""
    from specwire import __version__

    return __version__
