# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, auto_pickle=False
"""Compiled kernels of the columns: copying and joining octets, scanning entries, splitting them.

The functions are independent of any protocol. Each is equivalent to the numpy code next to its call, which tests
verify. Positions are trusted to be within the octets; lengths read from the octets are not.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memchr, memcpy

BUILD = "2"
"""Version that `specwire.generated.columns.native` requires; increased when a function changes."""

cdef enum:
    # Octets up to this number are copied as a fixed block, without a call of memcpy, if there is room.
    SHORT = 16


def copy_slices(
    const uint8_t[::1] octets, const int64_t[::1] start, const int64_t[::1] size, int32_t[::1] offsets,
    uint8_t[::1] data,
):
    """Copy slices one after another into `data`; return whether all octets are ASCII."""
    cdef Py_ssize_t row, count = start.shape[0], room = data.shape[0], source = octets.shape[0]
    cdef int64_t at = 0, length, begin
    cdef const uint8_t* read = &octets[0] if source else NULL
    cdef uint8_t* write = &data[0] if room else NULL
    with nogil:
        offsets[0] = 0
        for row in range(count):
            length = size[row]
            begin = start[row]
            if length <= SHORT and begin + SHORT <= source and at + SHORT <= room:
                # The next slice overwrites the octets copied in excess.
                memcpy(write + at, read + begin, SHORT)
            elif length:
                memcpy(write + at, read + begin, length)
            at += length
            offsets[row + 1] = <int32_t>at
    return _is_ascii(write, at)


cdef bint _is_ascii(const uint8_t* octets, int64_t count) noexcept nogil:
    cdef uint64_t found = 0, eight
    cdef int64_t at = 0
    while at + 8 <= count:
        memcpy(&eight, octets + at, 8)
        found |= eight
        at += 8
    while at < count:
        found |= octets[at]
        at += 1
    return not found & 0x8080808080808080u


cdef inline uint64_t _number(const uint8_t* octets, int width) noexcept nogil:
    cdef uint64_t found = 0
    cdef int place
    for place in range(width):
        found = found << 8 | octets[place]
    return found


def walk_entries(
    const uint8_t[::1] octets, int64_t[::1] at, const int64_t[::1] end, const int64_t[::1] counts, int first,
    int second, int64_t[::1] taken, uint8_t[::1] ok,
):
    """Scan the entries of every row. Each side of an entry is a length prefix and that many octets.

    Args:
        octets: octets of all rows.
        at: start of the entries; set to their end, or to 0 in a row that does not fit.
        end: end of each row.
        counts: number of entries, -1 if they extend to the end of the row.
        first: width of the length of the first side.
        second: width of the length of the second side, 0 if an entry has one side.
        taken: receives the number of entries that fit.
        ok: receives whether all entries fit.
    """
    cdef Py_ssize_t row, rows = at.shape[0]
    cdef int64_t place, stop, number, wanted
    cdef const uint8_t* read = &octets[0] if octets.shape[0] else NULL
    with nogil:
        for row in range(rows):
            place, stop, wanted, number = at[row], end[row], counts[row], 0
            while place < stop if wanted < 0 else number < wanted:
                place = _behind(read, place, stop, first)
                if place >= 0 and second:
                    place = _behind(read, place, stop, second)
                if place < 0:
                    break
                number += 1
            taken[row] = number
            ok[row] = place >= 0
            at[row] = place if place >= 0 else 0


cdef inline int64_t _behind(const uint8_t* octets, int64_t at, int64_t end, int width) noexcept nogil:
    """Return the end of the octets counted by a length at `at`; -1 if there are fewer."""
    cdef uint64_t length
    if end - at < width:
        return -1
    length = _number(octets + at, width)
    at += width
    return -1 if length > <uint64_t>(end - at) else at + <int64_t>length


def fill_entries(
    const uint8_t[::1] octets, const int64_t[::1] at, const int64_t[::1] taken, int first, int second,
    int64_t[::1] start, int64_t[::1] size, int64_t[::1] begin, int64_t[::1] length,
):
    """Store the start and size of each side of the entries that `walk_entries` scanned."""
    cdef Py_ssize_t row, rows = at.shape[0], entry = 0
    cdef int64_t place, number, found
    cdef const uint8_t* read = &octets[0] if octets.shape[0] else NULL
    with nogil:
        for row in range(rows):
            place = at[row]
            for number in range(taken[row]):
                found = <int64_t>_number(read + place, first)
                place += first
                start[entry], size[entry] = place, found
                place += found
                if second:
                    found = <int64_t>_number(read + place, second)
                    place += second
                    begin[entry], length[entry] = place, found
                    place += found
                entry += 1


def divide(
    const uint8_t[::1] octets, const int64_t[::1] start, const int64_t[::1] size, uint8_t octet, bint last,
    int64_t[::1] found,
):
    """Store the position of the first (or last) `octet` in each slice, -1 if there is none."""
    cdef Py_ssize_t row, rows = start.shape[0]
    cdef int64_t place
    cdef const uint8_t* read = &octets[0] if octets.shape[0] else NULL
    cdef const void* where
    with nogil:
        for row in range(rows):
            if last:
                place = start[row] + size[row] - 1
                while place >= start[row] and read[place] != octet:
                    place -= 1
                found[row] = place if place >= start[row] else -1
            else:
                where = memchr(read + start[row], octet, size[row]) if size[row] else NULL
                found[row] = <const uint8_t*>where - read if where != NULL else -1


cdef struct Source:
    # Elements have 32-bit or 64-bit offsets, or all the same width.
    const int32_t* small
    const int64_t* large
    int64_t width
    const uint8_t* octets
    int64_t length


def join(list offsets, list octets, int32_t[::1] ends, uint8_t[::1] out):
    """Write the first element of each source to `out`, then the second, and so on; store the end of each row.

    Args:
        offsets: for each source, an array with the start of its elements and the end of the last one; or the
            width of all elements.
        octets: for each source, its octets.
        ends: receives the end of each row, one more item than rows; the first item becomes 0.
        out: receives the octets; as large as all elements together.

    Raises:
        ValueError: an element exceeds the octets of its source, or `out` is too small.
    """
    cdef Py_ssize_t sources = len(offsets), count = ends.shape[0] - 1
    cdef Source* found
    if count < 1 or sources < 1 or out.shape[0] < 1 or len(octets) != sources:
        raise ValueError("nothing to join")
    found = <Source*> malloc(sources * sizeof(Source))
    if found is NULL:
        raise MemoryError
    try:
        for number in range(sources):
            _describe(&found[number], offsets[number], octets[number], count)
        if not _copy(found, sources, ends, out):
            raise ValueError("an element outside of its source")
    finally:
        free(found)


cdef int _describe(Source* source, object offsets, const uint8_t[::1] octets, Py_ssize_t count) except -1:
    """Set the location of a source's elements; the caller keeps the arrays alive."""
    cdef const int32_t[::1] small
    cdef const int64_t[::1] large
    cdef Py_ssize_t places = count + 1
    source.small, source.large, source.width = NULL, NULL, 0
    if octets.shape[0] < 1:
        raise ValueError("a source without octets")
    source.octets, source.length = &octets[0], octets.shape[0]
    if isinstance(offsets, int):
        source.width = offsets
    elif offsets.itemsize == 4:
        small = offsets
        source.small, places = &small[0], small.shape[0]
    else:
        large = offsets
        source.large, places = &large[0], large.shape[0]
    if places != count + 1:
        raise ValueError("sources of different length")
    return 0


cdef bint _copy(Source* sources, Py_ssize_t number, int32_t[::1] ends, uint8_t[::1] out) noexcept nogil:
    cdef Py_ssize_t row, index
    cdef int64_t at = 0, begin, size, room = out.shape[0]
    cdef Source* source
    ends[0] = 0
    for row in range(ends.shape[0] - 1):
        for index in range(number):
            source = &sources[index]
            if source.small is not NULL:
                begin = source.small[row]
                size = source.small[row + 1] - begin
            elif source.large is not NULL:
                begin = source.large[row]
                size = source.large[row + 1] - begin
            else:
                begin = row * source.width
                size = source.width
            if begin < 0 or size < 0 or size > source.length - begin or size > room - at:
                return False
            if size <= SHORT and begin + SHORT <= source.length and at + SHORT <= room:
                memcpy(&out[at], source.octets + begin, SHORT)
            else:
                memcpy(&out[at], source.octets + begin, size)
            at += size
        ends[row + 1] = <int32_t> at
    return True
