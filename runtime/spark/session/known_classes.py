"""Classes of Java that PySpark need not ask for again.

At each function of columns PySpark asks Java what `functions` is, and then whether it has a function of that name: of all
that the two say to each other while a run over few messages is planned, these questions are a third. And a name without
a package is dear: Java looks for such a class in some three hundred jars before it tries what was imported.

No answer changes while Java runs. So each class that PySpark asks for often is kept where Python looks before it asks: in the
dictionary of the view of Java, which is made anew with each Java; and in that of the class its functions. Values of
fields are asked for as before.
"""

from __future__ import annotations

from typing import Any

from py4j.java_gateway import JavaClass, JavaMember, JVMView  # type: ignore[import-untyped]  # py4j has no types

NAMES = (
    "functions",
    "PythonUtils",
    "PythonSQLUtils",
    "org.apache.spark.sql.functions",
    "org.apache.spark.sql.types.Metadata",
    "org.apache.spark.sql.classic.SparkSession",
)
"""As PySpark spells them."""


class KnownClass(JavaClass):  # type: ignore[misc]  # py4j has no types
    """A class of Java that is asked for each of its functions once."""

    def __getattr__(self, name: str) -> Any:
        found = super().__getattr__(name)
        if isinstance(found, JavaMember):
            self.__dict__[name] = found
        return found


def keep_classes(view: JVMView) -> None:
    """Keep the classes of `NAMES` in a view of Java; what is no class there, or is kept already, is left as it is."""
    for name in NAMES:
        found = getattr(view, name)
        if type(found) is JavaClass:
            setattr(view, name, KnownClass(found._fqn, found._gateway_client))
