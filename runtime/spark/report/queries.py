"""SQL behind each number of the report, for DuckDB in the output folder.

A test runs every statement that a report shows, and compares the result with the number beside it. In Spark,
replace ``read_parquet('answers/x/**/*.parquet', …)`` by ``parquet.`answers/x```.
"""

from __future__ import annotations

from specwire.runtime.spark.report.findings import BINS_PER_DECADE

BINS_OF_TOPICS = 5
"""Bins of the table ``topics`` in one bin of the latency chart: 100 a decade, and 20."""

assert BINS_PER_DECADE * BINS_OF_TOPICS == 100


def source(table: str) -> str:
    """Return the FROM item of a table below the output folder."""
    return f"read_parquet('{table}/**/*.parquet', hive_partitioning = true, union_by_name = true)"


def quote(text: str) -> str:
    """Return a SQL string literal."""
    return "'" + text.replace("'", "''") + "'"


def _rows(table: str, protocol: str | None, *conditions: str, twins: bool = True) -> str:
    """FROM and WHERE: rows of a protocol, without the second views of connections unless `twins`."""
    parts = [f"FROM {source(table)}"]
    if not twins:
        views = f"SELECT DISTINCT tap, conversation FROM {source('answers/twins')}"
        parts.append(f"ANTI JOIN ({views}) USING (tap, conversation)")
    of_protocol = [f"protocol = {quote(protocol)}"] if protocol is not None else []
    where = " AND ".join((*of_protocol, *conditions))
    return "\n".join((*parts, *([f"WHERE {where}"] if where else [])))


def count_messages(protocol: str | None) -> str:
    """Return the query of the card ``messages``."""
    return f"SELECT sum(messages)\n{_rows('counts', protocol)}"


def count_octets(protocol: str | None) -> str:
    """Return the query of the card ``octets``."""
    return f"SELECT sum(octets)\n{_rows('counts', protocol)}"


def count_undecoded(protocol: str | None) -> str:
    """Return the query of the card ``not decoded``."""
    return f"SELECT coalesce(sum(messages), 0)\n{_rows('counts', protocol, 'wrong_kind IS NOT NULL')}"


def count_taps() -> str:
    """Return the query of the card ``taps``: those with messages, or with messages that they dropped."""
    return (
        f"SELECT count(DISTINCT tap)\nFROM (SELECT tap FROM {source('counts')}\n"
        f"UNION ALL SELECT tap FROM {source('segments')} WHERE tap <> '' AND dropped > 0)"
    )


def count_dropped() -> str:
    """Return the query of the card ``dropped``; each segment states the number of its tap so far."""
    return (
        "SELECT coalesce(sum(dropped), 0)\n"
        f"FROM (SELECT tap, max(dropped) AS dropped FROM {source('segments')} WHERE tap <> '' GROUP BY tap)"
    )


def count_missing() -> str:
    """Return the query of the card ``missing``."""
    return "SELECT sum(tap.missing)\nFROM (SELECT unnest(taps) AS tap FROM read_json('summary.json'))"


def count_quarantined() -> str:
    """Return the query of the card ``segments set aside``."""
    latest = f"SELECT name, arg_max(outcome, run) AS outcome FROM {source('segments')} GROUP BY name"
    return f"SELECT count(*)\nFROM ({latest})\nWHERE outcome = 'quarantined'"


def count_violations(protocol: str | None, reading: str) -> str:
    """Return the query of the cards ``violations``."""
    return f"SELECT count(*)\n{_rows('answers/violations', protocol, f'reading = {quote(reading)}', twins=False)}"


def busiest(protocol: str | None, width_s: float) -> str:
    """Return the query of the card of the bar with the most messages."""
    width_ms = round(width_s * 1000)
    bars = (
        f"SELECT sum(messages) AS messages\n{_rows('counts', protocol)}\nGROUP BY floor(since / {width_ms})"
    )
    return f"SELECT max(messages)\nFROM ({bars})"


def messages_over_time(protocol: str | None, width_s: float) -> str:
    """Return the query of the chart of messages over time: the begin of each bar, and its messages."""
    width_ms = round(width_s * 1000)
    kind = "protocol" if protocol is None else "coalesce(message, '(undecoded)')"
    begin = f"floor(since / {width_ms}) * {width_ms}"
    return (
        f"SELECT make_timestamp(CAST({begin} * 1000 AS BIGINT)) AS begin, {kind} AS name, sum(messages)\n"
        f"{_rows('counts', protocol)}\nGROUP BY ALL ORDER BY ALL"
    )


def types(protocol: str | None, taps: list[str]) -> str:
    """Return the query of the table of messages by type, with a column for each of `taps`."""
    each = "".join(
        f"\n  coalesce(sum(messages) FILTER (WHERE tap = {quote(tap)}), 0) AS {identifier(tap)},"
        for tap in taps
    )
    return (
        f"SELECT coalesce(message, '(undecoded)') AS message, sender,{each}\n"
        f"  sum(messages) AS messages, sum(octets) AS octets\n{_rows('counts', protocol)}\n"
        "GROUP BY 1, 2 ORDER BY 1, 2"
    )


def identifier(name: str) -> str:
    """Return a SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def errors(protocol: str | None, limit: int) -> str:
    """Return the query of the table of messages that did not decode."""
    return (
        "SELECT min(text) AS finding, wrong_kind AS kind, tap, sum(messages) AS messages\n"
        f"{_rows('counts', protocol, 'wrong_kind IS NOT NULL')}\n"
        "GROUP BY tap, protocol, wrong_message, wrong_field, wrong_kind\n"
        f"ORDER BY messages DESC, tap, finding LIMIT {limit}"
    )


def violations(protocol: str | None) -> str:
    """Return the query of the table of violations."""
    return (
        "SELECT coalesce(message, '(undecoded)') AS message, kind, reading,\n"
        "  count(DISTINCT (tap, conversation)) AS conversations, count(*) AS violations\n"
        f"{_rows('answers/violations', protocol, twins=False)}\n"
        "GROUP BY ALL ORDER BY reading, violations DESC, kind, message"
    )


def latencies(protocol: str | None) -> str:
    """Return the query of the latency chart: kind, begin of the bin in microseconds, and answers in it."""
    return (
        f"SELECT kind, 10 ** (floor(item.bin / {BINS_OF_TOPICS}) / {BINS_PER_DECADE}.0) AS from_us,\n"
        f"  sum(item.count) AS answers\n"
        f"FROM (SELECT kind, unnest(spread) AS item {_rows('answers/topics', protocol)})\n"
        "GROUP BY ALL ORDER BY ALL"
    )


def topics(protocol: str | None, limit: int) -> str:
    """Return the query of the slowest topics; quantiles follow from the histograms in the column ``spread``."""
    rows = _rows("answers/topics", protocol)
    quantiles = ",\n  ".join(
        f"least(10 ** ((min(bin) FILTER (WHERE upto >= ceil(answered * {share})) + 1) / 100), any_value(max_us))"
        f" AS {name}"
        for name, share in (("p50_us", "0.5"), ("p99_us", "0.99"))
    )
    return (
        "WITH summed AS (SELECT kind, service, topic, sum(begun) AS begun, sum(answered) AS answered,\n"
        "    sum(errors) AS errors, sum(unanswered) AS unanswered, max(max_us) AS max_us\n"
        f"  {rows} GROUP BY ALL),\n"
        "bins AS (SELECT kind, service, topic, item.bin AS bin, sum(item.count) AS number\n"
        f"  FROM (SELECT kind, service, topic, unnest(spread) AS item {rows}) GROUP BY ALL),\n"
        "seen AS (SELECT *, sum(number) OVER (PARTITION BY kind, service, topic ORDER BY bin) AS upto FROM bins)\n"
        "SELECT s.kind, s.service, s.topic, begun, answered, errors, unanswered,\n"
        f"  {quantiles}, any_value(max_us) AS longest_us\n"
        "FROM summed AS s LEFT JOIN seen ON s.kind = seen.kind\n"
        "  AND s.service IS NOT DISTINCT FROM seen.service AND s.topic IS NOT DISTINCT FROM seen.topic\n"
        "GROUP BY s.kind, s.service, s.topic, begun, answered, errors, unanswered\n"
        f"ORDER BY p99_us DESC NULLS LAST, begun DESC, 1, 2, 3 LIMIT {limit}"
    )


def silences(protocol: str | None, limit: int) -> str:
    """Return the query of the longest silences."""
    return (
        "SELECT conversation, peer, tap, sender, ts, outcome, silent_s\n"
        f"{_rows('answers/silences', protocol, twins=False)}\n"
        f"ORDER BY silent_s DESC, tap, conversation, seq LIMIT {limit}"
    )


def conversations(protocol: str | None) -> str:
    """Return the query of the chart of conversations; the chart has those with silences, then the busiest."""
    return (
        "SELECT conversation, peer, tap, first_ts, last_ts, messages\n"
        f"{_rows('answers/conversations', protocol, twins=False)}\nORDER BY messages DESC, tap, conversation"
    )


def edges(protocol: str | None) -> str:
    """Return the query of the chart of peers."""
    return (
        "SELECT kind, source, source_role, target, target_role,\n"
        "  coalesce(sum(messages), 0) AS messages, coalesce(sum(octets), 0) AS octets,\n"
        f"  coalesce(sum(errors), 0) AS errors\n{_rows('answers/edges', protocol)}\n"
        "GROUP BY ALL ORDER BY octets DESC, kind, source, source_role, target, target_role"
    )


def files(protocol: str | None, limit: int) -> str:
    """Return the query of the largest files."""
    sent = _rows("answers/transfers", protocol, "outcome <> 'deleted'", twins=False)
    return (
        "SELECT filename, peer, outcome, octets, coalesce(duration_us, 0) AS duration_us, octets_per_s, stalls,\n"
        f"  coalesce(stalled_us, 0) AS stalled_us\n{sent}\n"
        f"ORDER BY octets DESC, filename, tap, seq LIMIT {limit}"
    )


def transfers(protocol: str | None, limit: int) -> str:
    """Return the query of files by conversation."""
    return (
        "SELECT tap, conversation, peer,\n"
        "  count(*) FILTER (WHERE outcome <> 'deleted' AND \"offset\" = 0) AS begun,\n"
        "  count(*) FILTER (WHERE outcome = 'complete') AS complete,\n"
        "  count(*) FILTER (WHERE outcome = 'deleted') AS deleted,\n"
        "  sum(chunks) AS chunks, sum(octets) AS octets, (max(last_mono) - min(mono)) / 1e9 AS seconds\n"
        f"{_rows('answers/transfers', protocol)}\n"
        f"GROUP BY tap, conversation, peer ORDER BY octets DESC, tap, conversation LIMIT {limit}"
    )


def taps(protocol: str | None) -> str:
    """Return the query of the table of taps, without what they dropped or miss (table ``segments``)."""
    return (
        "SELECT tap, protocol, make_timestamp(min(first)) AS first, make_timestamp(max(last)) AS last,\n"
        "  sum(messages) AS messages, sum(octets) AS octets,\n"
        "  coalesce(sum(messages) FILTER (WHERE wrong_kind IS NOT NULL), 0) AS undecoded\n"
        f"{_rows('counts', protocol)}\nGROUP BY tap, protocol ORDER BY first, tap, protocol"
    )


def segments() -> str:
    """Return the query of the segments that cannot be read or are odd."""
    return f"SELECT name, outcome, reason, run\nFROM {source('segments')}\nWHERE reason <> ''\nORDER BY run DESC, name"
