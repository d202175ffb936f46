"""What a teacher and a student call. README.md tells what runs when."""
