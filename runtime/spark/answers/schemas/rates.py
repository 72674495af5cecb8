"""The tables by minute and by day: how long things took, and how much was said."""

from __future__ import annotations

from pyspark.sql.types import ArrayType, StructField, StructType

from specwire.runtime.spark.answers.schemas.shared import (
    LONG,
    STORED,
    TAP,
    TEXT,
    TIMESTAMP,
    column,
    micros,
)

MINUTE = column("minute", TIMESTAMP, "the minute in which it began, UTC")

LATENCY = StructType(
    [
        *STORED,
        MINUTE,
        TAP,
        column("kind", TEXT, "rpc (a request), job (a worker's part of a NORFAB job), transfer (a file)"),
        column("service", TEXT, "service that was asked; null for transfers"),
        column("topic", TEXT, "topic of the request, task of the job; null for transfers"),
        column("peer", TEXT, "the connection's peer; of a job the worker"),
        column("begun", LONG, "requests, parts of jobs or files that began in this minute"),
        column("answered", LONG, "those that ended, with an error or without: the quantiles are theirs"),
        column("errors", LONG, "those that ended with an error"),
        column("unanswered", LONG, "those that were given up"),
        micros("p50_us", "median"),
        micros("p90_us", "90 of 100 took at most so long"),
        micros("p99_us", "99 of 100 took at most so long"),
        micros("max_us", "the longest"),
        micros("total_us", "their sum: by `answered` it gives the mean"),
        column("octets", LONG, "octets of requests and responses, or of the files", "octets"),
    ]
)

TOPICS = StructType(
    [
        *STORED,
        column("kind", TEXT, "rpc (a request), job (a worker's part of a NORFAB job), transfer (a file)"),
        column("service", TEXT, "service that was asked; null for transfers"),
        column("topic", TEXT, "topic of the request, task of the job; null for transfers"),
        column("begun", LONG, "requests, parts of jobs or files that began on this day"),
        column("answered", LONG, "those that ended, with an error or without: the quantiles are theirs"),
        column("errors", LONG, "those that ended with an error"),
        column("unanswered", LONG, "those that were given up"),
        micros("p50_us", "half of them took at most so long; above the median by less than 2.4 %"),
        micros("p90_us", "90 of 100 took at most so long; above that quantile by less than 2.4 %"),
        micros("p99_us", "99 of 100 took at most so long; above that quantile by less than 2.4 %"),
        micros("max_us", "the longest"),
        micros("total_us", "their sum: by `answered` it gives the mean"),
        column("octets", LONG, "octets of requests and responses, or of the files", "octets"),
        column(
            "spread",
            ArrayType(StructType([StructField("bin", LONG), StructField("count", LONG)])),
            "how many took how long: bin b has those from 10^(b/100) microseconds to 10^((b+1)/100), bin 0 also "
            "what took less; bins without any are left out. Counts of several days and topics add up",
        ),
    ]
)

TRAFFIC = StructType(
    [
        *STORED,
        MINUTE,
        TAP,
        column("message", TEXT, "class of the messages; _errors where they did not decode"),
        column("sender", TEXT, "role letter of the side that sent them"),
        column("topic", TEXT, "topic, service or group of the messages; null where they have none"),
        column("messages", LONG, "messages"),
        column("octets", LONG, "octets of all frames", "octets"),
        column("errors", LONG, "messages that did not decode"),
    ]
)
