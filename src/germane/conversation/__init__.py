"""Conversations: messages in every provider's layout, and what of them to show.

Pure: no clock, no I/O. Scores come in as plain data, since finding is the other wing's.
"""
