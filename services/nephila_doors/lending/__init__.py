"""A frontier for programs that fetch by themselves."""
