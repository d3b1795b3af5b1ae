"""Regions of programs as Triton kernels: loop nests of thunder-loops, rendered as text."""
