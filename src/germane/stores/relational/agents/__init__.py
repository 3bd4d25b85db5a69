"""What is about whole agents: to name all, to copy, to look back at, and to remove one.

Level: stores (imports retrieval and what is above it).
"""
