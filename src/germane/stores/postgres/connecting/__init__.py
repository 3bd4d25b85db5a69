"""The way to a server: connections, transactions that are repeated, and what the driver sends.

Level: stores (imports retrieval and what is above it).
"""
