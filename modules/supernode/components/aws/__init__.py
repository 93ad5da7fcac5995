"""Pools that are rented from AWS; the only package that imports pulumi_aws."""
