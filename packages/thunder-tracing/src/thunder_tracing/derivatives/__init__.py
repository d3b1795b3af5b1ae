"""Derivatives and batches inside of a program: hooks, ``backward()``, ``torch.autograd``, ``torch.func``."""
