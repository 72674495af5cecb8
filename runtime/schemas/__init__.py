"""The messages of a package in the schema languages of others: JSON Schema and Avro.

Both are written from the package's layout, which knows what columns do not: which values an integer may have, and which
fields can be absent. The words come from the metadata of its columns.
"""
