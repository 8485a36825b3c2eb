"""`python -m zoo.benchmark`: how fast an experiment trains on this machine, what bounds it, and what it costs."""
