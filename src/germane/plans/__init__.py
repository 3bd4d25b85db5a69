"""Plans: data that says which sections a context has and how they are filled. Pure.

Level: plans (imports packing, ranking, kinds, model and errors; never stores or retrieval).
"""
