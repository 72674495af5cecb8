"""FILEMQ v2: files against credit. A file's end is an empty chunk, as our servers mark it."""

from __future__ import annotations

from specwire.runtime.spark.answers.particulars import ALWAYS, Files, Numbers, Particulars

CONNECTION = "coalesce(nullif(regexp_extract(conversation, '(?:^|-)([0-9a-f]{16})$', 1), ''), conversation)"
"""The routing id that our clients choose: the server's tap puts its own session before it."""

PARTICULARS = Particulars(
    connection=CONNECTION,
    beats={"Hugz": ALWAYS, "HugzOk": ALWAYS},
    greetings={"Ohai": ALWAYS},
    farewells={"Kthxbai": ALWAYS},
    files=Files(ends="octet_length(chunk) = 0"),
    numbers=Numbers(columns={"Cheezburger": "try_cast(sequence as bigint)"}, restarts={"Ohai": ALWAYS}),
)
