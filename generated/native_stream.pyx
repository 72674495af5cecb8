# Written by specwire from generator/support/native_stream.pyx. Do not edit; change that file and run `make generate`.
# cython: language_level=3, boundscheck=False, wraparound=False, auto_pickle=False, binding=True
"""Compiled framing of well-formed messages on a byte stream, for `specwire.generated.stream`.

Everything else is left to the Python code, which raises the errors: a wrong magic, a size beyond the end, an
incomplete or too long message, parts that are not bytes.
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.string cimport memcmp, memcpy

BUILD = "parts 3"
"""Version of this module, changed with its source; `specwire.generated.stream` accepts no other."""


@cython.final
cdef class QuickParts:
    """Fast path of `PartFraming`. `native` is the magic that is written."""

    cdef tuple magics
    cdef bytes native
    cdef int length_octets, escape, long_octets
    cdef Py_ssize_t magic_octets

    def __init__(self, tuple magics, bytes native, int length_octets, int escape, int long_octets):
        self.magics, self.native, self.magic_octets = magics, native, len(native)
        self.length_octets, self.escape, self.long_octets = length_octets, escape, long_octets

    def frame(self, parts):
        """Return the octets that carry `parts`, or None."""
        cdef Py_ssize_t size, length = 0
        cdef Py_ssize_t most = (<Py_ssize_t>1 << (8 * min(self.length_octets, self.long_octets, 7))) - 1
        cdef list given
        cdef object part, octets
        cdef char* out
        if type(parts) is not list:
            return None
        given = <list>parts
        for part in given:
            if type(part) is not bytes:
                return None
            size = PyBytes_GET_SIZE(part)
            length += 1 + size + (self.long_octets if size >= self.escape else 0)
            if length > most:
                return None
        octets = PyBytes_FromStringAndSize(NULL, self.magic_octets + self.length_octets + length)
        out = PyBytes_AS_STRING(octets)
        memcpy(out, PyBytes_AS_STRING(self.native), self.magic_octets)
        out = put(out + self.magic_octets, length, self.length_octets)
        for part in given:
            size = PyBytes_GET_SIZE(part)
            if size < self.escape:
                out = put(out, size, 1)
            else:
                out = put(put(out, self.escape, 1), size, self.long_octets)
            memcpy(out, PyBytes_AS_STRING(part), size)
            out += size
        return octets

    def cut(self, bytes given, Py_ssize_t max_octets):
        """Return where the complete messages end, and the parts of each."""
        cdef list messages = []
        cdef list parts
        cdef Py_ssize_t at = 0
        while (parts := self.next(given, &at, max_octets)) is not None:
            messages.append(parts)
        return at, messages

    cdef list next(self, bytes given, Py_ssize_t* place, Py_ssize_t max_octets):
        """Return the parts of the message at `place` and advance `place` past it; or None."""
        cdef Py_ssize_t at = place[0]
        cdef const unsigned char* octets = <const unsigned char*>PyBytes_AS_STRING(given)
        cdef Py_ssize_t held = PyBytes_GET_SIZE(given), size
        cdef Py_ssize_t start = at + self.magic_octets + self.length_octets, end
        cdef list parts
        cdef bytes magic
        if start > held:
            return None
        for magic in self.magics:
            if memcmp(octets + at, PyBytes_AS_STRING(magic), self.magic_octets) == 0:
                break
        else:
            return None
        size = number(octets + at + self.magic_octets, self.length_octets)
        if size <= 0 or size > max_octets or size > held - start:
            return None
        parts = []
        at, end = start, start + size
        while at < end:
            size = octets[at]
            at += 1
            if size == self.escape:
                if end - at < self.long_octets:
                    return None
                size = number(octets + at, self.long_octets)
                at += self.long_octets
            if size < 0 or size > end - at:
                return None
            parts.append(PyBytes_FromStringAndSize(<const char*>octets + at, size))
            at += size
        place[0] = end
        return parts


cdef char* put(char* out, Py_ssize_t value, int octets) noexcept:
    """Write a big-endian integer; return the address after it."""
    cdef int at
    for at in range(octets - 1, -1, -1):
        out[at] = <char>(value & 0xFF)
        value >>= 8
    return out + octets


cdef Py_ssize_t number(const unsigned char* octets, int count) noexcept:
    """Return a big-endian integer; negative if it is too large for a length."""
    cdef Py_ssize_t value = 0
    cdef int at
    for at in range(count):
        if value >> 47:
            return -1
        value = (value << 8) | octets[at]
    return value
