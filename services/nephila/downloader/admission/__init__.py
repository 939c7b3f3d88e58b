"""How many requests this process takes at once: no more than its container's memory and CPU allow."""
