"""Packing: split a budget, choose what fits, write it down. Pure.

Level: packing (imports protocols, kinds, tokens, model and errors; never stores or retrieval).
"""
