"""A capture of a busy network: two Flux brokers, a FILEMQ server and a NORFAB broker, as their taps write it.

    python -m tests.benchmarks.spark.busy FOLDER [--messages N]

makes it, 10 million messages in about a minute, for `specwire pipeline run` and for looking at its report. Time goes on as in
life, 460 messages a second, so that 10 million are six hours over midnight. What a report must show is in it: one
connection that has three tenths of a broker's traffic, topics from microseconds to seconds, calls that fail or are
given up, peers that fall silent and come back or do not, credit that runs out, messages that break the dialog or do not
decode, dropped and missing ones. The same number of messages gives the same capture.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from tests.benchmarks.spark.busy.capture import write_capture


def main() -> None:
    """Write the capture that was asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--messages", type=int, default=10_000_000)
    asked = parser.parse_args()
    print(f"{write_capture(asked.folder, asked.messages):,} messages in {asked.folder}")


if __name__ == "__main__":
    main()
