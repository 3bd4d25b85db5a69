"""Memories in tables: all that a store does by named queries, whatever database runs them.

Level: stores (imports retrieval and what is above it).
"""
