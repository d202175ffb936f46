"""Write what a student gets back: a page that loads nothing, and messages without hidden code."""
