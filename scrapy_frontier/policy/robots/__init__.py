"""robots.txt."""
