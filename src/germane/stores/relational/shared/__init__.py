"""Spaces: who is in them, with which rights, and what happened there.

Level: stores (imports retrieval and what is above it).
"""
