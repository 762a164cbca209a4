"""Questions about runs: each is SQL of sql/, run with parameters."""
