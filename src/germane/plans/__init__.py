"""Plans: data that says which sections a context has and how they are filled. Pure."""
