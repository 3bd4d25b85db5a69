"""Conversations: messages in every provider's layout, and what of them to show.

Pure: no clock, no I/O. Scores are arguments, since search belongs to the stores.
"""
