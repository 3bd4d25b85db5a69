"""Germane: the best context that provably fits a token budget, with an account of what was left out."""
