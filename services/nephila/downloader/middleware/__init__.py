"""What is done with each request and answer of the downloader between the service and the fetcher."""
