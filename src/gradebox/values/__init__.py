"""What may cross between a student's process and the tests: values, by copy, and nothing else."""
