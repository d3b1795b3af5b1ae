"""Opcodes that Python 3.13 brought."""
