"""What modules log, in the log of a peer."""

from __future__ import annotations

import logging

from specwire.runtime.log.lines import OURS, take_over


def test_what_our_modules_log_comes_as_lines_that_forge_nothing() -> None:
    lines: list[str] = []
    handler = take_over(lines.append)
    try:
        logging.getLogger("specwire.runtime.filemq.publication").warning("%s is back", "/a\n12:00:00 forged")
        logging.getLogger("somebody.else").warning("not ours")
        logging.getLogger("specwire.runtime").info("not worth a line")
        try:
            raise ValueError("bad\noctets")
        except ValueError:
            logging.getLogger("specwire.runtime").exception("a message could not be handled")
    finally:
        OURS.removeHandler(handler)
    logging.getLogger("specwire.runtime").warning("nobody listens any more")
    assert lines[:2] == ["/a\\n12:00:00 forged is back", "a message could not be handled"]
    assert lines[2] == "Traceback (most recent call last):"
    assert lines[-2:] == ["ValueError: bad", "octets"]
