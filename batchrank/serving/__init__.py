"""The model servers of a job: found, proved, kept busy, waited for."""
