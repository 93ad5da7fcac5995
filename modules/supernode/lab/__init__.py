"""The simulated datacentre: hardware is simulated, software never is."""
