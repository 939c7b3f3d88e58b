"""Nephila: a Kubernetes-native web crawler whose four services also run as one program."""

__version__ = "0.1.0"
