"""Rules on the pages of a crawl: which rules a job has, where they run, and how the results enter the messages."""
