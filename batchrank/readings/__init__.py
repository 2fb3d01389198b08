"""How windows are asked and their answers read, one reading a file; independent of scheduling."""
