"""What calls a student's answers to a lab, in the process where they live, and returns values."""
