"""What an operator does with a server's store: its schema, its indexes, and what is left in its files.

Level: stores (imports retrieval and what is above it).
"""
