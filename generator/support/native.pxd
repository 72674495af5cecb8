"""Declarations of native.pyx for the compiled codecs; native.pyx has the documentation."""

from cpython.object cimport PyObject
from libc.stdint cimport uint64_t


cdef class Signature:
    """Fields of a class in the order of its constructor."""

    cdef str name
    cdef tuple fields
    cdef list defaults
    cdef bint keywords
    cdef int bind(self, PyObject* const* args, size_t nargs, PyObject* names, PyObject** values) except -1
    cdef int by_name(self, PyObject* const* args, tuple names, PyObject** values) except -1
    cdef Py_ssize_t place_of(self, object name) except -1


cdef class NativeRoot:
    """C part of every message. `kept__` holds all values as passed if one does not fit its C member."""

    cdef tuple kept__
    cdef tuple values__(self)


cdef class NativeRecord(NativeRoot):
    pass


cdef class NativeMessage(NativeRecord):
    cdef list frames__(self)


cdef tuple keep(PyObject** values, Py_ssize_t count)
cdef object pure(object value)
cdef object native(object value)
cdef int enrol(type cls, object twin, void* constructor) except -1
cdef object uuid_of(bytes octets, bint little)
cdef bytes octets_of_uuid(object value, bint little)
cdef bint checksum_of(str algorithm, bytes octets, uint64_t* value) noexcept
