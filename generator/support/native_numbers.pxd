"""Numbers in octets for the compiled codecs.

A number is a `uint64_t`; a signed one has the bits of its two's complement. Readers and writers of
fixed size expect that the caller has checked that the octets exist. The numbers of variable size are
those of `specwire.generated.numbers`; their writers need room for `MOST_OCTETS`.
"""

cimport cython
from cpython.exc cimport PyErr_Clear
from cpython.float cimport PyFloat_AS_DOUBLE, PyFloat_CheckExact
from cpython.object cimport PyObject
from libc.stdint cimport int64_t, uint8_t, uint64_t

cdef extern from "Python.h":
    unsigned long long PyLong_AsUnsignedLongLong(PyObject*)
    long long PyLong_AsLongLong(PyObject*)
    bint PyLong_CheckExact(object)
    PyObject* PyErr_Occurred()
    double PyFloat_Unpack4(const char*, int)
    double PyFloat_Unpack8(const char*, int)
    int PyFloat_Pack4(double, char*, int)
    int PyFloat_Pack8(double, char*, int)

cdef enum:
    MOST_OCTETS = 24

cdef enum Sign:
    UNSIGNED
    ZIGZAG
    COMPLEMENT


# Fixed size; for a known width, compilers emit a single load or store

cdef inline uint64_t number(const uint8_t* at, int octets) noexcept nogil:
    """Return a big-endian integer of 1 to 8 octets."""
    cdef uint64_t value = 0
    cdef int index
    for index in range(octets):
        value = value << 8 | at[index]
    return value


cdef inline uint64_t number_little(const uint8_t* at, int octets) noexcept nogil:
    cdef uint64_t value = 0
    cdef int index
    for index in range(octets):
        value |= <uint64_t>at[index] << 8 * index
    return value


cdef inline int64_t extended(uint64_t value, int bits) noexcept nogil:
    """Return the value of a two's complement of 1 to 64 bits."""
    cdef uint64_t sign = <uint64_t>1 << (bits - 1)
    return <int64_t>((value ^ sign) - sign)


cdef inline void put_number(uint8_t* at, uint64_t value, int octets) noexcept nogil:
    cdef int index
    for index in range(octets):
        at[index] = <uint8_t>(value >> 8 * (octets - 1 - index))


cdef inline void put_number_little(uint8_t* at, uint64_t value, int octets) noexcept nogil:
    cdef int index
    for index in range(octets):
        at[index] = <uint8_t>(value >> 8 * index)


cdef inline object float_in(const uint8_t* at, int octets, bint little):
    """Return a floating-point number of 4 or 8 octets; the conversions are those of `struct`."""
    if octets == 4:
        return PyFloat_Unpack4(<const char*>at, little)
    return PyFloat_Unpack8(<const char*>at, little)


cdef inline bint put_float(uint8_t* at, object value, int octets, bint little) noexcept:
    cdef int result
    if not PyFloat_CheckExact(value):
        return False
    if octets == 4:
        result = PyFloat_Pack4(PyFloat_AS_DOUBLE(value), <char*>at, little)
    else:
        result = PyFloat_Pack8(PyFloat_AS_DOUBLE(value), <char*>at, little)
    if result < 0:
        PyErr_Clear()
    return result == 0


cdef inline bint fits(PyObject* given, uint64_t most, uint64_t* value) noexcept:
    """Return whether an object is an int (no subclass) from 0 to `most`; if so, set `value`."""
    if not PyLong_CheckExact(<object>given):
        return False
    value[0] = PyLong_AsUnsignedLongLong(given)
    if value[0] == <uint64_t>-1 and PyErr_Occurred() != NULL:
        PyErr_Clear()
        return False
    return value[0] <= most


cdef inline bint fits_signed(PyObject* given, int64_t least, int64_t most, uint64_t* value) noexcept:
    """Return whether an object is an int (no subclass) in a range; if so, set `value`."""
    cdef int64_t found
    if not PyLong_CheckExact(<object>given):
        return False
    found = PyLong_AsLongLong(given)
    if found == -1 and PyErr_Occurred() != NULL:
        PyErr_Clear()
        return False
    value[0] = <uint64_t>found
    return least <= found <= most


# Groups of 7 bits

cdef inline const uint8_t* varint_in(
    uint64_t* value, const uint8_t* at, const uint8_t* end, int maximum, bint little, Sign sign
) noexcept nogil:
    """Read groups of 7 bits; return the address after them, NULL if they are no number."""
    cdef uint64_t found = 0, top = 0, group
    cdef int count = 0
    while True:
        if at == end or count == maximum:
            return NULL
        group = at[0] & 0x7F
        if little:
            found |= group << 7 * count
        else:
            found = found << 7 | group
        if count == (9 if little else 0):
            top = group
        count += 1
        at += 1
        if at[-1] < 0x80:
            break
    # Of ten groups, the top one has one bit of the number, and all of its bits of the sign.
    if count == 10 and top and top != (0x7F if sign == COMPLEMENT else 1):
        return NULL
    if sign == COMPLEMENT and count < 10:
        found = <uint64_t>extended(found, 7 * count)
    elif sign == ZIGZAG:
        found = found >> 1 ^ (0 - (found & 1))
    value[0] = found
    return at


cdef inline int varint_at(uint8_t* at, uint64_t value, int maximum, bint little, Sign sign) noexcept nogil:
    """Write the fewest groups of 7 bits; return how many, 0 if there are more than `maximum`."""
    cdef uint8_t groups[10]
    cdef bint negative = sign == COMPLEMENT and <int64_t>value < 0
    cdef int count = 0, index
    if sign == ZIGZAG:
        value = value << 1 ^ (0 - (value >> 63))
    while True:
        groups[count] = value & 0x7F
        count += 1
        value = ~(~value >> 7) if negative else value >> 7
        if value == (<uint64_t>-1 if negative else 0) and (
            sign != COMPLEMENT or (groups[count - 1] >> 6 == (1 if negative else 0))
        ):
            break
    if count > maximum:
        return 0
    for index in range(count):
        at[index] = groups[index if little else count - 1 - index] | 0x80
    at[count - 1] &= 0x7F
    return count


# Digits

cdef inline int digit(uint8_t octet, uint64_t base) noexcept nogil:
    """Return the value of a digit, -1 for another octet."""
    if c"0" <= octet <= c"9":
        return octet - c"0"
    if base == 16 and c"a" <= octet | 0x20 <= c"f":
        return (octet | 0x20) - c"a" + 10
    return -1


@cython.cdivision(True)
cdef inline const uint8_t* digits_in(
    uint64_t* value, const uint8_t* at, const uint8_t* end, uint64_t base, int minimum, int maximum,
    bint negatives
) noexcept nogil:
    """Read digits up to an octet that is none; return its address, NULL if they are no number."""
    cdef bint negative = negatives and at < end and at[0] == c"-"
    cdef uint64_t found = 0, most = <uint64_t>-1
    cdef int count = 0, next
    if negatives:
        most = (<uint64_t>1 << 63) - (0 if negative else 1)
    at += negative
    while at < end and count < maximum:
        next = digit(at[0], base)
        if next < 0:
            break
        if found > (most - next) // base:
            return NULL
        found = found * base + next
        count += 1
        at += 1
    if count < minimum or (negative and not found):
        return NULL
    value[0] = 0 - found if negative else found
    return at


@cython.cdivision(True)
cdef inline int digits_at(
    uint8_t* at, uint64_t value, uint64_t base, int minimum, int maximum, bint negatives
) noexcept nogil:
    """Write a number as text; return its octets, 0 if there are more than `maximum` digits."""
    cdef uint8_t found[MOST_OCTETS]
    cdef bint negative = negatives and <int64_t>value < 0
    cdef int count = 0, index
    if negative:
        at[0] = c"-"
        value = 0 - value
    while value or count < minimum:
        found[count] = (c"0" if value % base < 10 else c"a" - 10) + value % base
        value //= base
        count += 1
    if count > maximum:
        return 0
    for index in range(count):
        at[negative + index] = found[count - 1 - index]
    return negative + count
