"""Views of a watch: a status line and alerts for a person, or lines of JSON for a program."""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.status import Status
from rich.text import Text

from specwire.runtime.log.text import show
from specwire.runtime.spark.live.work import Batch, Listener
from specwire.runtime.spark.pipeline.summary import Summary


class View(Listener):
    """View of a watch for the time of a block. Its methods are called on several threads."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    @abstractmethod
    def tell(self, step: str) -> None:
        """Show the current step."""


class Lines(View):
    """View with one JSON object for each event: batch, answers, alert, failure or waiting."""

    def __init__(self, write: Callable[[Mapping[str, object]], None]) -> None:
        self._write = write
        self._lock = threading.Lock()

    def tell(self, step: str) -> None:
        """Ignore steps: a program waits for batches."""

    def on_batch(self, batch: Batch, summary: Summary | None) -> None:
        """Write the batch and the totals of the output folder."""
        self._put(
            {
                "event": "batch",
                "batch": batch.number,
                "segments": batch.segments,
                "took_s": round(batch.took_s, 3),
                "lag_s": None if batch.lag_s is None else round(batch.lag_s, 3),
                **_totals(summary),
            }
        )

    def on_answers(self, summary: Summary | None) -> None:
        """Write that the answers are up to date."""
        self._put({"event": "answers", **_totals(summary)})

    def on_alert(self, alert: Mapping[str, object]) -> None:
        """Write the alert, with its columns as members."""
        self._put({"event": "alert", **alert})

    def on_failure(self, text: str) -> None:
        """Write a failure after which the watch retries."""
        self._put({"event": "failure", "text": text})

    def on_wait(self) -> None:
        """Write that the watch waits for another run in the folder."""
        self._put({"event": "waiting"})

    def _put(self, event: Mapping[str, object]) -> None:
        with self._lock:
            self._write(event)


class Screen(View):
    """View with a status line on a terminal, or a line for each batch; alerts stay above it."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._status = Status("", console=console) if console.is_terminal else None
        self._segments = 0
        self._alerts = 0
        self._last = ""
        self._unknown = False

    def __enter__(self) -> Self:
        if self._status is not None:
            self._status.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._status is not None:
            self._status.stop()
            self._console.print(Text(self._last), soft_wrap=True)

    def tell(self, step: str) -> None:
        """Show a step as a line, or in the status line, which remains visible at the end."""
        self._last = step = show(step)
        if self._status is not None:
            self._status.update(Text(step))
        else:
            self._console.print(Text(step), soft_wrap=True)

    def on_batch(self, batch: Batch, summary: Summary | None) -> None:
        """Show the totals, and the delay of the tables behind the traffic."""
        self._segments += batch.segments
        if summary is not None and summary.unknown and not self._unknown:
            self._unknown = True
            self._console.print(Text(show(summary.unknown_sentence)), soft_wrap=True)
        behind = "" if batch.lag_s is None else f", {batch.lag_s:.1f} s behind"
        alerts = f", alerts: {self._alerts}" if self._alerts else ""
        self.tell(f"{_count(summary)}; {self._segments:,} segments taken in{behind}{alerts}")

    def on_answers(self, summary: Summary | None) -> None:
        """Show that the answers are up to date."""
        self.tell(f"{_count(summary)}; answers up to date")

    def on_alert(self, alert: Mapping[str, object]) -> None:
        """Show an alert as a permanent line."""
        self._alerts += 1
        place = f"{alert['protocol']} {alert['tap']} {alert['conversation']}"
        self._console.print(
            Text(show(f"{alert['raised']} {alert['kind']}: {place}: {alert['text']}")), soft_wrap=True
        )

    def on_failure(self, text: str) -> None:
        """Show a failure as a permanent line."""
        self._console.print(Text(show(f"retrying: {text}", keep="\n\t")), soft_wrap=True)

    def on_wait(self) -> None:
        """Show that the watch waits for another run in the folder."""
        self.tell("another run is at work in the folder, waiting for it")


def _totals(summary: Summary | None) -> dict[str, object]:
    if summary is None:
        return {}
    return {
        "messages": summary.messages,
        "undecoded": summary.undecoded,
        "unknown": summary.unknown,
        "dropped": summary.dropped,
    }


def _count(summary: Summary | None) -> str:
    if summary is None:
        return "no messages yet"
    return f"{summary.messages:,} messages, {summary.undecoded:,} not decoded"
