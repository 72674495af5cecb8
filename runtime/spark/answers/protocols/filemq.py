"""FILEMQ v2: files against credit. A file's end is an empty chunk, as our servers mark it."""

from __future__ import annotations

from specwire.runtime.spark.answers.particulars import ALWAYS, Files, Numbers, Particulars

PARTICULARS = Particulars(
    beats={"Hugz": ALWAYS, "HugzOk": ALWAYS},
    greetings={"Ohai": ALWAYS},
    farewells={"Kthxbai": ALWAYS},
    files=Files(ends="octet_length(chunk) = 0"),
    numbers=Numbers(columns={"Cheezburger": "try_cast(sequence as bigint)"}, restarts={"Ohai": ALWAYS}),
)
