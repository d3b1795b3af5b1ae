"""Guards: facts about external state that a program relies on, a module per kind of value."""
