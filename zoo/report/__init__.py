"""`python -m zoo.report`: rows of results and training runs as one page, with charts and tables."""
