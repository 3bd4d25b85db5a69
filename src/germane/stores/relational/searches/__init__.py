"""What finds memories: the columns and postings that a process keeps of an agent, and their signals.

Level: stores (imports retrieval and what is above it).
"""
