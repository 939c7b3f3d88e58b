"""Sites and their directories: settings with inheritance, the plan of the day, and the runs of directories as jobs."""
