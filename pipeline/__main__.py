"""``python -m pipeline`` is ``tracelake``."""

from pipeline.cli import main

main()
