"""Benchmarks: the frontier beside Scrapy's own schedulers, in ratios taken within one run. See
README.md.
"""
