"""What becomes of memories: uses, outcomes, and their lives.

Level: stores (imports retrieval and what is above it).
"""
