"""One file for each verb: fetch what the pure rooms need, let them decide, apply what they decided.

Level: verbs (imports everything above: pipeline, plans, retrieval, stores and below).
"""
