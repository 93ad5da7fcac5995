"""Inventory plugin: a shim over supernode.bringup, which holds all there is to know."""

from __future__ import annotations

import json
from pathlib import Path

from ansible.errors import AnsibleParserError
from ansible.plugins.inventory import BaseInventoryPlugin

from supernode.bringup import inventory_source
from supernode.bringup.inventory import Inventory
from supernode.cli.inputs import locator
from supernode.cli.output import describe
from supernode.errors import CouldNotRun, SupernodeError

DOCUMENTATION = r"""
name: supernode
short_description: An environment's hosts, as designed and as provisioned
description:
  - Computes the design of the environment in whose folder the inventory file lies, joins it with what provisioning
    left, and refuses when the two do not belong together.
  - Values are data and never templates, so a rendered file may hold braces.
options:
  plugin:
    description: This plugin's name.
    required: true
    choices: [supernode]
  environment:
    description: The environment's name, which is also its folder's. Needed unless I(built) is given.
    type: str
  source:
    description: C(record) reads the outputs that the last provisioning left; C(stack) asks the engine.
    type: str
    choices: [record, stack]
    default: record
  built:
    description: A file that holds an inventory computed already; a bring-up gives Ansible the one it has.
    type: path
author: The supernode project
"""

EXAMPLES = r"""
plugin: supernode
environment: lab
"""


class InventoryModule(BaseInventoryPlugin):
    NAME = "supernode"

    def verify_file(self, path):
        return super().verify_file(path) and Path(path).name in {"supernode.yml", "supernode.yaml"}

    def parse(self, inventory, loader, path, cache=True):
        super().parse(inventory, loader, path, cache)
        self._read_config_data(path)
        folder = inventory_source.environment_of(Path(path))
        try:
            self._add(self._built() or self._computed(Path(path), folder))
        except SupernodeError as error:
            raise AnsibleParserError(describe(error, locator(folder))) from error

    def _built(self):
        built = self.get_option("built")
        return Inventory.from_json(json.loads(Path(built).read_text(encoding="utf-8"))) if built else None

    def _computed(self, path, folder):
        named = self.get_option("environment")
        if named != folder.name:
            what = f"names the environment {named!r} and lies in the folder of {folder.name!r}"
            raise CouldNotRun(str(path), what, f"write `environment: {folder.name}`")
        return inventory_source.load(folder, self.get_option("source"))

    def _add(self, built):
        for group, members in built.groups.items():
            self.inventory.add_group(group)
            for host in members:
                self.inventory.add_host(host, group)
        for host, variables in built.hostvars.items():
            for name, value in variables.items():
                self.inventory.set_variable(host, name, value)
