"""`python -m batchrank`."""

from batchrank.cli import main

main()
