"""Robots.txt as a store has it: the records of the origins, and what they mean for the URLs of a run."""
