"""What a watcher sees of a segment that another tool wrote."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from specwire.generated.filemq import columns
from specwire.runtime.packages import add_packages
from specwire.runtime.spark.live.conversations import read_bundles
from tests.runtime.own_packages import EDITION, EDITION_2, QUOTE_2, write_package
from tests.runtime.spark import captures
from tests.runtime.spark.growing import add_segment


def test_texts_that_are_not_utf_8_are_made_so(tmp_path: Path) -> None:
    """And the messages are looked at as ever."""
    path = add_segment(tmp_path, 0, [("C", captures.NOM)] * 3, first=0)
    captures.put_octets(path, "conversation", "sender", "peer")
    whole, odd = read_bundles(path)
    assert [message.seq for message in whole.messages] == [0, 2]
    assert (odd.conversation, odd.peer) == (captures.AS_TEXT, captures.AS_TEXT)
    (message,) = odd.messages
    assert (message.seq, message.sender, message.name) == (1, captures.AS_TEXT, "Nom")


def test_the_package_of_the_stated_edition_decodes(tmp_path: Path) -> None:
    """A quote of the second edition is none of the first; a third edition has no package."""
    add_packages(write_package(tmp_path / "one"), write_package(tmp_path / "two", edition=EDITION_2))
    found = []
    for number, edition in enumerate((EDITION, EDITION_2, "Ticker 3")):
        folder = tmp_path / str(number)
        captures.write_capture(folder, [("S", QUOTE_2)], protocol="ticker", edition=edition)
        found.append([
            (bundle.protocol, message.name, message.fault)
            for path in folder.iterdir() for bundle in read_bundles(path) for message in bundle.messages
        ])  # fmt: skip
    first, second, third = found
    assert [(protocol, name) for protocol, name, _ in first] == [("ticker", None)]
    assert (second, third) == ([("ticker", "Quote", None)], [])


def test_frames_that_are_missing_or_hold_null_are_faults(tmp_path: Path) -> None:
    """Told in the words of the tables; the messages around them are looked at as ever."""
    path = add_segment(tmp_path, 0, [("C", captures.NOM)] * 5, first=0)
    whole = pq.read_table(path)
    frames = [captures.NOM, None, [], [captures.NOM[0], None], captures.NOM]
    at = whole.schema.get_field_index("frames")
    odd = whole.set_column(at, whole.schema.field(at), pa.array(frames, pa.list_(pa.binary())))
    pq.write_table(odd, path)
    (bundle,) = read_bundles(path)
    assert [message.seq for message in bundle.messages] == [0, 1, 2, 3, 4]
    assert [message.name for message in bundle.messages] == ["Nom", None, None, None, "Nom"]
    faults = [message.fault for message in bundle.messages]
    none = "filemq.signature: expected a frame with signature, found 0 frames [FILEMQ v2 signature]"
    null = "frames in frame 1: expected octets, found null [columns]"
    assert faults == [None, none, none, null, None]
    told = columns.decode(odd["frames"].combine_chunks()).column("_error").to_pylist()
    assert faults == [error and error["text"] for error in told]
