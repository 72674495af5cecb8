"""Measures: labels from the wire are harmless, bounded in length, and never there twice."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest
from prometheus_client import Metric
from prometheus_client import parser as classic
from prometheus_client.openmetrics import parser as openmetrics

from specwire.runtime.observe.exposition import Exposition
from specwire.runtime.observe.families import LONGEST_LABEL, Family, counter, gauge, tidy


def test_names_that_look_alike_are_added() -> None:
    """Prometheus refuses an answer in which a sample is there twice, and with it all the others."""
    family = Family("jobs", "gauge", "help", ("service",))
    family.add(2, "a\x07")
    family.add(3, "a\\x07")
    family.add(1, "b" * 500)
    family.add(1, "b" * 600)
    assert family.samples == {("a\\x07",): 5, ("b" * LONGEST_LABEL,): 2}


def test_a_label_is_printable_and_not_longer_than_is_said() -> None:
    assert tidy("\x1b[2J\n") == "\\x1b[2J\\n"
    assert len(tidy("\x00" * LONGEST_LABEL)) == LONGEST_LABEL
    assert tidy("\ud800").encode() == b"\\ud800"


@pytest.mark.parametrize(
    ("accept", "content_type", "parse"),
    [
        ("", "text/plain", classic.text_string_to_metric_families),
        (
            "application/openmetrics-text; version=1.0.0",
            "application/openmetrics-text",
            openmetrics.text_string_to_metric_families,
        ),
    ],
)
def test_prometheus_reads_what_is_written(
    accept: str, content_type: str, parse: Callable[[str], Iterable[Metric]]
) -> None:
    """In either of its forms, with what would break a line or end a string in a label."""
    family = Family("specwire_test_jobs", "counter", "Jobs.", ("service",))
    family.add(4, 'a"b\\c\nd} 1\nevil_total 7')
    exposition = Exposition(lambda: [family, gauge("specwire_test_depth", "Depth.", 1.5)])
    text, told_type = exposition.write(accept)
    assert told_type.startswith(content_type)
    read = {one.name: one for one in parse(text.decode())}
    assert not [name for name in read if "evil" in name]
    (sample,) = (one for one in read["specwire_test_jobs"].samples if one.name.endswith("_total"))
    assert (sample.value, sample.labels) == (4.0, {"service": 'a"b\\c\\nd} 1\\nevil_total 7'})
    assert read["specwire_test_depth"].samples[0].value == 1.5


def test_each_answer_is_of_its_moment() -> None:
    totals = iter((1, 2))
    exposition = Exposition(lambda: [counter("specwire_test", "Help.", next(totals))])
    answers = [exposition.write("")[0].decode() for _ in range(2)]
    assert ["specwire_test_total 1.0" in answers[0], "specwire_test_total 2.0" in answers[1]] == [True, True]
