"""One direction of a TCP connection: segments in any order to octets in theirs.

Sequence numbers count modulo 2^32 and begin anywhere, so a place in the stream is kept as an integer without
bound, and a segment belongs at the place nearest to what is expected next. Of octets that come twice the first
are kept, as most receivers do. What comes early waits, within bounds; what the receiver has acknowledged and the
recorder never saw is lost, and can be skipped.
"""

from __future__ import annotations

from bisect import bisect_left

WINDOW = 1 << 30
"""The largest receive window: a segment further ahead belongs to something else."""

MAX_WAITING_OCTETS = 16 << 20
MAX_WAITING_PIECES = 8192

_MODULUS = 1 << 32


class Flow:
    """The octets of one direction, as far as they have been seen.

    Attributes:
        begun: whether the place of any octet is known.
        expected: place of the next octet.
        initial: number of the SYN that began it, None where that was not seen.
        end: place behind the last octet, None before FIN.
    """

    def __init__(self) -> None:
        self.begun = False
        self.expected = 0
        self.initial: int | None = None
        self.end: int | None = None
        self._places: list[int] = []
        self._pieces: list[bytes] = []
        self._times: list[int] = []
        self._waiting = 0

    def begin(self, seq: int, *, initial: int | None = None) -> None:
        """Say the number of the first octet, and that of the SYN where it began with one."""
        self.begun, self.expected, self.initial = True, seq, initial

    def place(self, seq: int) -> int:
        """Return the place nearest to the expected one that has the number `seq`."""
        ahead = (seq - self.expected + _MODULUS // 2) % _MODULUS - _MODULUS // 2
        return self.expected + ahead

    def add(self, place: int, octets: bytes, time_ns: int) -> None:
        """Take octets that begin at `place`; those that were there before, or are out of any window, are dropped."""
        if place < self.expected:
            octets, place = octets[self.expected - place :], self.expected
        if not octets or place - self.expected > WINDOW:
            return
        at = bisect_left(self._places, place)
        if at:
            before = self._places[at - 1] + len(self._pieces[at - 1])
            if before > place:
                octets, place = octets[before - place :], before
        # What reaches into pieces that wait already fills only the room between them.
        while octets:
            room = self._places[at] - place if at < len(self._places) else len(octets)
            if room > 0:
                self._places.insert(at, place)
                self._pieces.insert(at, octets[:room])
                self._times.insert(at, time_ns)
                self._waiting += min(room, len(octets))
                at += 1
            if room >= len(octets):
                return
            held = len(self._pieces[at])
            octets, place = octets[room + held :], place + room + held
            at += 1

    def take(self) -> list[tuple[int, bytes]]:
        """Return the octets that follow what was taken before, as far as they are there, each with its time."""
        count, place = 0, self.expected
        while count < len(self._places) and self._places[count] == place:
            place += len(self._pieces[count])
            count += 1
        taken = list(zip(self._times[:count], self._pieces[:count], strict=True))
        if count:
            del self._places[:count], self._pieces[:count], self._times[:count]
            self._waiting -= place - self.expected
            self.expected = place
        return taken

    def skip_to(self, place: int) -> int:
        """Give up what is missing before `place`, or before the first octets that wait; return how many octets."""
        place = min(place, self._places[0]) if self._places else place
        lost = max(0, place - self.expected)
        self.expected += lost
        return lost

    def skip(self) -> int:
        """Give up what is missing before the first octets that wait; return how many octets."""
        return self.skip_to(self._places[0]) if self._places else 0

    @property
    def is_full(self) -> bool:
        """Whether so much waits that what is missing has to be given up."""
        return self._waiting > MAX_WAITING_OCTETS or len(self._places) > MAX_WAITING_PIECES

    @property
    def is_waiting(self) -> bool:
        """Whether octets wait for some before them."""
        return bool(self._places)
