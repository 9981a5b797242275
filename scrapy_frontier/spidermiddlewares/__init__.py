"""Spider middlewares: what happens to what spiders yield."""
