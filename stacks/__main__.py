"""The Pulumi program."""
