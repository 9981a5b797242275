"""Downloader middlewares: what happens to a request between the engine and the wire."""
