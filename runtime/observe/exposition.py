"""Metrics in the formats of Prometheus, with those of the process (CPU, memory, descriptors)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from prometheus_client import CollectorRegistry, PlatformCollector, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from specwire.runtime.observe.families import Family, Histogram

OPENMETRICS_TYPE = "application/openmetrics-text"
OPENMETRICS = f"{OPENMETRICS_TYPE}; version=1.0.0"


class Exposition:
    """Writer of what `describe` returns.

    Args:
        describe: returns the current families.
    """

    def __init__(self, describe: Callable[[], Iterable[Family]]) -> None:
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        PlatformCollector(registry=self._registry)
        self._registry.register(_Described(describe))

    def write(self, accept: str) -> tuple[bytes, str]:
        """Return the text and its content type: OpenMetrics if ``Accept`` names it, otherwise Prometheus.

        The library does not get the header itself, because it raises various exceptions for invalid
        versions.
        """
        encode, content_type = choose_encoder(OPENMETRICS if OPENMETRICS_TYPE in accept else "")
        return encode(self._registry), content_type


class _Described(Collector):
    """Collector of the metrics of a server."""

    def __init__(self, describe: Callable[[], Iterable[Family]]) -> None:
        self._describe = describe

    def collect(self) -> Iterator[Metric]:
        for family in self._describe():
            if isinstance(family, Histogram):
                yield _describe_histogram(family)
                continue
            kind = CounterMetricFamily if family.kind == "counter" else GaugeMetricFamily
            metric = kind(family.name, family.help, labels=family.labels)
            for labels, value in family.samples.items():
                metric.add_metric(labels, value)
            yield metric

    def describe(self) -> Iterable[Metric]:
        """Return nothing: the server is not asked at registration."""
        return ()


def _describe_histogram(family: Histogram) -> Metric:
    metric = HistogramMetricFamily(family.name, family.help, labels=family.labels)
    limits = [*map(floatToGoString, family.limits), "+Inf"]
    for labels, total in family.samples.items():
        metric.add_metric(labels, [*zip(limits, family.buckets[labels], strict=True)], total)
    return metric
