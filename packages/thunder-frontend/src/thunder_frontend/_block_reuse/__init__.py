"""Blocks that a model repeats: run once, played again for their equals."""
