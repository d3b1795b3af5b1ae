"""What becomes of code of PyTorch, of Python and of Thunder itself; no acquisition is known here."""
