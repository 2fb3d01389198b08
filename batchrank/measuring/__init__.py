"""What runs are worth: compared, tried on a sample, tuned, labelled."""
