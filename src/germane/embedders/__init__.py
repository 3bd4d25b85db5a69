"""Adapters that make an `Embedder` of what a user has: a function, an HTTP endpoint, a loaded model.

Level: embedders (may import everything from errors down to retrieval; never stores, ranking,
packing or plans).
Importing this package imports no optional dependency.
"""

from __future__ import annotations

from germane.embedders.callable import CallableEmbedder
from germane.embedders.openai_http import HttpEmbedder
from germane.embedders.sentence_transformers import SentenceTransformersEmbedder

__all__ = ["CallableEmbedder", "HttpEmbedder", "SentenceTransformersEmbedder"]
