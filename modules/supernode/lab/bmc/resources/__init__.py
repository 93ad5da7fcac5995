"""The Redfish resources; importing this fills `routes.ROUTES`."""

from supernode.lab.bmc.resources import (
    accounts,
    bios,
    certificates,
    chassis,
    logs,
    managers,
    root,
    sessions,
    storage,
    systems,
    updates,
)

__all__ = [
    "accounts",
    "bios",
    "certificates",
    "chassis",
    "logs",
    "managers",
    "root",
    "sessions",
    "storage",
    "systems",
    "updates",
]
