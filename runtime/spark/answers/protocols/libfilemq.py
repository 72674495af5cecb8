"""FILEMQ as the C implementation speaks it: the last chunk of a file says so, and may have content."""

from __future__ import annotations

from specwire.runtime.spark.answers.particulars import ALWAYS, Files, Numbers, Particulars
from specwire.runtime.spark.answers.protocols.filemq import CONNECTION

PARTICULARS = Particulars(
    connection=CONNECTION,
    beats={"Hugz": ALWAYS, "HugzOk": ALWAYS},
    greetings={"Ohai": ALWAYS},
    farewells={"Kthxbai": ALWAYS},
    files=Files(ends="eof <> 0 or octet_length(chunk) = 0"),
    numbers=Numbers(columns={"Cheezburger": "try_cast(sequence as bigint)"}, restarts={"Ohai": ALWAYS}),
)
