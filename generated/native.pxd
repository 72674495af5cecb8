# Written by specwire from generator/support/native.pxd. Do not edit; change that file and run `make generate`.
"""What the compiled messages of all packages share, as the compiled codecs see it; native.pyx has the words."""

from cpython.object cimport PyObject


cdef class Signature:
    """The fields of a class as its constructor takes them."""

    cdef str name
    cdef tuple fields
    cdef list defaults
    cdef bint keywords
    cdef int bind(self, PyObject* const* args, size_t nargs, PyObject* names, PyObject** values) except -1
    cdef int by_name(self, PyObject* const* args, tuple names, PyObject** values) except -1
    cdef Py_ssize_t place_of(self, object name) except -1


cdef class NativeRoot:
    """What is C in every message; `kept__` holds all values as they were given where one fits no C member."""

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
