"""The attempts index: a SQLite copy of the records, for queries. It can be rebuilt at any time."""
