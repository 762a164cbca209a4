"""The interfaces of other tools, on top of the lake."""
