"""The index of the attempts: `index.Index`, a SQLite copy of the records for queries. It can be rebuilt at any time."""
