"""Columns in a form that Spark sends to Python workers quickly: no list is null, at any depth.

Where batches are bounded in octets (``spark.sql.execution.arrow.maxBytesPerBatch``) Spark weighs a batch after each
row, and for a list column it then walks over all rows since the last that is not null: 50,000 rows of other messages
take minutes. So a list goes as a struct of ``_there`` and ``_items``, and a struct with its own ``_there``; names that
begin with ``_`` are no names of fields.
"""

from __future__ import annotations

from typing import Any, TypeAlias, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, StructType

Arrays: TypeAlias = "pa.Array[Any]"

_compute: Any = pc


def wire(column: Column, type: DataType) -> Column:
    """Return a column of `type` as it is sent."""
    match type:
        case ArrayType(elementType=element):
            items = F.transform(column, lambda item: wire(item, element)) if _has_lists(element) else column
            return F.struct(column.isNotNull().alias("_there"), F.coalesce(items, F.array()).alias("_items"))
        case StructType(fields=fields):
            inside = [wire(column[field.name], field.dataType).alias(field.name) for field in fields]
            return F.struct(column.isNotNull().alias("_there"), *inside)
    return column


def unwire(array: Arrays, type: DataType) -> Arrays:
    """Return what arrived as the array of `type` that was sent."""
    match type:
        case ArrayType(elementType=element):
            there, items = _compute.struct_field(array, "_there"), _compute.struct_field(array, "_items")
            ends = np.cumsum(_compute.list_value_length(items).to_numpy(), dtype=np.int32)
            offsets: Any = pa.array(np.concatenate([np.zeros(1, np.int32), ends]))
            values = _compute.list_flatten(items)
            values = unwire(values, element) if _has_lists(element) else values
            return pa.ListArray.from_arrays(offsets, values, mask=_compute.invert(there))
        case StructType(fields=fields):
            there = _compute.struct_field(array, "_there")
            inside = [unwire(_compute.struct_field(array, f.name), f.dataType) for f in fields]
            mask = cast(Any, _compute.invert(there))
            return pa.StructArray.from_arrays(inside, names=[field.name for field in fields], mask=mask)
    return array


def _has_lists(type: DataType) -> bool:
    match type:
        case ArrayType():
            return True
        case StructType(fields=fields):
            return any(_has_lists(field.dataType) for field in fields)
    return False
