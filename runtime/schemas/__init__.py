"""The messages of a package in the schema languages of others: JSON Schema and Avro.

Both are written from two things: the layout, which says what values a field can have and whether it can be
absent, and the columns, which have types and metadata.
"""
