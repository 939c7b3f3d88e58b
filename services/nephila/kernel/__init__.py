"""What every room shares: the route, the messages, the bus contract, identity, time, configuration, errors."""
