"""What is run in place of which callables while a program is acquired."""
