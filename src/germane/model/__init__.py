"""The vocabulary: frozen values that every other room speaks in."""
