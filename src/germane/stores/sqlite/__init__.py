"""One SQLite file as a store of memories."""
