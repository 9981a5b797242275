"""Rendered pages: the document comes over the wire as any other, and a browser without a network is given it."""
