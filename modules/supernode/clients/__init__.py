"""The async clients everyone shares: Redfish, SSH, and secrets by reference."""
