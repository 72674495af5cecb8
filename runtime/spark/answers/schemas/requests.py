"""The table of remote procedure calls: Flux and CMB1."""

from __future__ import annotations

from pyspark.sql.types import BooleanType, StructType

from specwire.runtime.spark.answers.schemas.shared import LONG, MOMENT, PLACE, TEXT, TIMESTAMP, column, micros

REQUESTS = StructType(
    [
        *PLACE,
        column("asker", TEXT, "role letter of the side that asked on this connection"),
        column(
            "requester", TEXT, "who asked: the route stack, latest hop first, joined by '!'; empty on its own"
        ),
        column("hops", LONG, "routes in that stack: brokers between who asked and this connection"),
        column("matchtag", LONG, "the tag that pairs request and responses"),
        column("topic", TEXT, "service and method"),
        column("service", TEXT, "the topic up to the first period"),
        column("nodeid", LONG, "the rank that was asked; null for responses without a request"),
        column("userid", LONG, "who asked, as the broker that let it in saw it"),
        *MOMENT,
        column("answered_ts", TIMESTAMP, "when the latest response came; null where there is none"),
        column("first_mono", LONG, "when the first response came, the tap's monotonic clock", "nanoseconds"),
        column("last_mono", LONG, "when the latest message came, the tap's monotonic clock", "nanoseconds"),
        column("responses", LONG, "responses so far"),
        column("streaming", BooleanType(), "whether it is a call with a stream of responses"),
        column(
            "errnum", LONG, "error number of the last response, 0 for success; ENODATA ends a stream well"
        ),
        column(
            "outcome",
            TEXT,
            "answered, error, open (not over yet), unanswered (given up: its tag was used again, or too long "
            "ago), unasked (responses to a request that the tap did not see), noresponse (none is wanted), "
            "untagged (matchtag 0: cannot be paired)",
        ),
        column("octets", LONG, "octets of the request and its responses", "octets"),
        micros("first_us", "from the request to its first response"),
        micros("latency_us", "from the request to its last response; null unless answered or error"),
    ]
)
