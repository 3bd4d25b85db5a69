"""The logs of conversations, and the words of their messages.

Level: stores (imports retrieval and what is above it).
"""
