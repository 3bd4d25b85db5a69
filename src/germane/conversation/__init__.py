"""Conversations: messages in every provider's layout, and what of them to show.

Level: ranking (imports model, errors, protocols and ranking; never retrieval or stores). Pure: no
clock, no I/O. Scores come in as plain data, since finding is the other wing's.
"""

from __future__ import annotations
