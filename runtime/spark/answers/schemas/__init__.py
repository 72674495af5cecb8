"""The columns of the answer tables, each with its meaning: what a report, a stream or a query builds on."""
