"""Blocks that a model repeats: run once, recorded again for their equals."""
