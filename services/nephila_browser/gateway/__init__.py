"""The forwarding proxy between a browser and the network."""
