"""What is written of memories: every change of a batch, in one transaction.

Level: stores (imports retrieval and what is above it).
"""
