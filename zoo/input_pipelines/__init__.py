"""Input: seeded sources of raw examples and the one pipeline that decodes, batches and prefetches them."""
