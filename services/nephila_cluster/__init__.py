"""Services over Kafka and on Kubernetes. See README.md."""
