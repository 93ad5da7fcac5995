"""Pulumi components: what a stack of an environment holds."""
