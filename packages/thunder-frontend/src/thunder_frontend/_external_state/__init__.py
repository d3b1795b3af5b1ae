"""External state: what a program reads of it becomes guards, what it writes is noted."""
