"""What agents hold in mind, and the log of its moves.

Level: stores (imports retrieval and what is above it).
"""
