"""Porches: each translates between germane and one world outside, and none knows another.

Level: integrations (imports the public door and what lies behind it).
"""
