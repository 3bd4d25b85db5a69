"""A PostgreSQL database as a store of memories."""
