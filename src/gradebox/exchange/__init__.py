"""Hand in and give back: nbgrader's exchange, with the places where students work."""
