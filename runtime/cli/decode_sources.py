"""Where the messages come from: a hex dump, a packet capture or a capture folder, told apart by what they begin with."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType

import msgspec

from specwire.runtime.capture.errors import CaptureError
from specwire.runtime.cli.console import fail
from specwire.runtime.cli.decode_dumps import find_kind, read_frames, read_stream
from specwire.runtime.cli.decode_octets import LOOK_EVERY_S, STANDARD_INPUT, read_portions
from specwire.runtime.cli.decode_waiting import Waiting
from specwire.runtime.packages import choose_package, load_package
from specwire.runtime.pcap.errors import PcapError
from specwire.runtime.pcap.hexdump import MAX_OCTETS, Kind, parse_dumps
from specwire.runtime.pcap.packets import Packet, PacketReader, holds_packets, is_packets
from specwire.runtime.pcap.rows import Row
from specwire.runtime.pcap.segments import Address
from specwire.runtime.pcap.traffic import Traffic

ETHERNET = 1
_PARQUET = b"PAR1"
_DUMP_TEXT_OCTETS = MAX_OCTETS * 5


class Readers(msgspec.Struct, frozen=True):
    """Which packages come into question.

    Attributes:
        packages: those that do where nothing else is said, in the order of preference.
        by_port: those that do on connections with that port.
        stated: whether a user named them, so that what a capture says of itself does not count.
    """

    packages: tuple[ModuleType, ...]
    by_port: Mapping[int, ModuleType] = {}
    stated: bool = False

    def for_connection(self, opener: Address, listener: Address) -> Sequence[ModuleType]:
        """Return the packages for a connection."""
        named = [self.by_port[end.port] for end in (listener, opener) if end.port in self.by_port]
        return named[:1] or self.packages

    def for_protocol(self, protocol: str | None, edition: str) -> Sequence[ModuleType]:
        """Return the packages for messages whose tap stated this protocol and edition."""
        if self.stated or not protocol:
            return self.packages
        name = choose_package(protocol, edition)
        return [] if name is None else [load_package(name)]


class Sources:
    """Reads sources one after another; packets of several files are one recording.

    Args:
        readers: which packages come into question.
        port: the only port whose connections are read.
        follow: whether to wait for more where a source ends.
        sender: the letter of the role that sent the octets of hex dumps.
        kind: what each dump of a hex dump is; found out where it is None.
        note: takes a sentence for the user.
        waiting: raises KeyboardInterrupt from `read` where it is asked to end.
        bar: whether to show on a terminal how much of a file has been read.
    """

    def __init__(
        self,
        readers: Readers,
        note: Callable[[str], None],
        *,
        port: int | None = None,
        follow: bool = False,
        sender: str | None = None,
        kind: Kind | None = None,
        waiting: Waiting | None = None,
        bar: bool = False,
    ) -> None:
        self._readers = readers
        self._note = note
        self._follow = follow
        self._sender = sender
        self._kind = kind
        self._waiting = waiting or Waiting()
        self._bar = bar
        self._traffic: Traffic | None = None
        self._port = port
        self._closing: list[Callable[[], list[str]]] = []

    def read(self, source: str) -> Iterator[Row | None]:
        """Yield the messages of a source, and None whenever it has to be waited for more."""
        path = Path(source)
        if source != STANDARD_INPUT and path.is_dir():
            yield from self._captures(path)
            return
        portions = read_portions(source, self._waiting, follow=self._follow, bar=self._bar)
        beginning = b""
        while len(beginning) < 4:
            portion = next(portions, None)
            if portion is None:
                break
            beginning += portion
            if not portion:
                yield None
        shown = "standard input" if source == STANDARD_INPUT else source
        if is_packets(beginning):
            yield from self._packets(shown, beginning, portions)
        elif beginning.startswith(_PARQUET) and source != STANDARD_INPUT:
            yield from self._captures(path)
        else:
            yield from self._dump(shown, beginning, portions)

    def end(self) -> Iterator[Row]:
        """Yield what the end of all sources makes known, and tell what could not be read."""
        if self._traffic is not None:
            yield from self._traffic.end()
            self._closing.append(self._traffic.notes)
        for notes in self._closing:
            for sentence in notes():
                self._note(sentence)

    def _captures(self, path: Path) -> Iterator[Row | None]:
        from specwire.runtime.cli.decode_captures import CaptureRows

        reader = CaptureRows(self._readers.for_protocol, self._note)
        self._closing.append(reader.notes)
        while True:
            try:
                yield from reader.read(path)
            except CaptureError as error:
                # A folder that is followed may have nothing in it yet.
                if not self._follow or any(path.glob("*.parquet")):
                    if path.is_dir() and any(map(holds_packets, path.iterdir())):
                        raise CaptureError(
                            f"{path}: a folder of packet captures; name its files, or read the folder on Spark: "
                            f"`specwire decode {path}/*`, `specwire pipeline run --capture {path} --out OUT`"
                        ) from error
                    raise
            if not self._follow:
                return
            yield None
            with self._waiting.waiting():
                time.sleep(LOOK_EVERY_S)

    def _packets(self, shown: str, beginning: bytes, portions: Iterator[bytes]) -> Iterator[Row | None]:
        traffic = self._recording()
        reader = PacketReader()
        try:
            for packet in reader.feed(beginning):
                yield from traffic.take(packet)
            for portion in portions:
                if not portion:
                    yield None
                for packet in reader.feed(portion):
                    yield from traffic.take(packet)
        except PcapError as error:
            yield from self.end()
            fail(f"{shown}: {error}")
        if missing := reader.end():
            self._note(f"{shown}: {missing}")

    def _recording(self) -> Traffic:
        if self._traffic is None:
            self._traffic = Traffic(self._readers.for_connection, port=self._port)
        return self._traffic

    def _dump(self, shown: str, beginning: bytes, portions: Iterator[bytes]) -> Iterator[Row | None]:
        if self._follow:
            fail(
                f"{shown}: a hex dump cannot be followed; --follow takes a capture folder or a packet capture"
            )
        octets = bytearray(beginning)
        for portion in portions:
            octets += portion
            if len(octets) > _DUMP_TEXT_OCTETS:
                fail(f"{shown}: a hex dump may have {_DUMP_TEXT_OCTETS >> 20} MiB")
        text = _text_of(bytes(octets), shown)
        try:
            dumped = parse_dumps(text, shown)
            if not dumped:
                fail(f"{shown}: there are no octets in it")
            kind = self._kind or find_kind(dumped)
            if kind is Kind.PACKET:
                for packet in (Packet(0, ETHERNET, piece) for message in dumped for piece in message):
                    for row in self._recording().take(packet):
                        yield msgspec.structs.replace(row, ts=None)
            elif kind is Kind.STREAM:
                yield from read_stream(dumped, self._readers.packages, self._sender, self._note)
            else:
                yield from read_frames(dumped, self._readers.packages, self._sender)
        except PcapError as error:
            fail(str(error) if str(error).startswith(shown) else f"{shown}: {error}")


def _text_of(octets: bytes, shown: str) -> str:
    try:
        text = octets.decode("utf-8-sig")
    except UnicodeDecodeError:
        fail(f"{shown}: neither a packet capture (pcap, pcapng) nor a capture segment nor a hex dump")
    if "\x00" in text:
        fail(f"{shown}: neither a packet capture (pcap, pcapng) nor a capture segment nor a hex dump")
    return text
