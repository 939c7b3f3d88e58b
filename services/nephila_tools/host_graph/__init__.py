"""The graph of hosts: graph.py reads the links, harmonic.py ranks, files.py writes Parquet."""
