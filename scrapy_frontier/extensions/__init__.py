"""Extensions: what a crawl shows of its frontier while it runs."""
