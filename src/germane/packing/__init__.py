"""Packing: split a budget, choose what fits, write it down. Pure."""
