"""Memories in tables: all that a store does by named queries, whatever database runs them."""
