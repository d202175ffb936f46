"""What calls a student's answers to a lab, in the process where they live, and returns values.

An exception of the answer is passed on, unless the driver says what it returns instead.
"""
