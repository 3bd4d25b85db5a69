# The public names of germane.embedders, imported when they are first used; see `germane.exports`.

from germane.embedders.adapters import CallableEmbedder as CallableEmbedder
from germane.embedders.adapters import CrossEncoderReranker as CrossEncoderReranker
from germane.embedders.adapters import HttpEmbedder as HttpEmbedder
from germane.embedders.adapters import HttpReranker as HttpReranker
from germane.embedders.adapters import SentenceTransformersEmbedder as SentenceTransformersEmbedder
from germane.embedders.adapters import embedder_named as embedder_named
from germane.embedders.static import LateInteractionReranker as LateInteractionReranker
from germane.embedders.static import OnnxEmbedder as OnnxEmbedder
from germane.embedders.static import StaticEmbedder as StaticEmbedder

__all__: list[str]
