"""A Flux broker, as it is shown."""

from __future__ import annotations

from specwire.runtime.flux.serve import FluxBroker
from specwire.runtime.observe.fluxtree import FluxTree
from specwire.runtime.observe.metrics.flux import measure
from specwire.runtime.observe.rates import Counted
from specwire.runtime.observe.subject import Subject
from specwire.runtime.observe.views.flux import view_broker


def broker_subject(broker: FluxBroker) -> Subject:
    """Return a broker as it is shown while it runs."""
    engine = broker.engine
    tree = FluxTree(broker.uri, engine.rank, engine.settings.tree.size)

    def totals() -> tuple[float, ...]:
        counters = engine.counters
        return counters.requests, counters.responses, counters.events, counters.dropped

    return Subject(
        counted=(Counted("requests"), Counted("responses"), Counted("events"), Counted("dropped")),
        totals=totals,
        measure=lambda: measure(broker.status()),
        view=lambda: view_broker(broker.status(), tree.latest()),
        health=lambda: view_broker(broker.status()).health,
        close=tree.close,
    )
