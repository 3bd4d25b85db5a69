"""The embedder that comes with the package, MiniLM as an extra, and adapters of what a user has.

Level: embedders (may import everything from errors down to retrieval; never stores, ranking,
packing or plans).
Importing this package imports no optional dependency.
"""

from __future__ import annotations

from germane.embedders.callable import CallableEmbedder
from germane.embedders.onnx import OnnxEmbedder
from germane.embedders.openai_http import HttpEmbedder
from germane.embedders.sentence_transformers import SentenceTransformersEmbedder
from germane.embedders.static import StaticEmbedder

__all__ = [
    "CallableEmbedder",
    "HttpEmbedder",
    "OnnxEmbedder",
    "SentenceTransformersEmbedder",
    "StaticEmbedder",
]
