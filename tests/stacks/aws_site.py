"""The example whose pool is rented from AWS, and a provider in AWS's place for the real engine."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from supernode import packaged

ENVIRONMENT = (packaged.root() / "inventories" / "examples" / "aws-p5" / "environment.yml").read_text()
ECHO = Path(__file__).parent / "echo" / "pulumi-resource-aws"


@dataclass(frozen=True)
class Trust:
    """What boot would have prepared."""

    serve_ca: str = "-----BEGIN CERTIFICATE-----\nMAo=\n-----END CERTIFICATE-----\n"
    ssh_public_key: str = "ssh-ed25519 AAAAC3Nza supernode"


def install(folder: Path) -> Path:
    """Write a launcher of the echo provider under AWS's name; returns the folder for PATH."""
    folder.mkdir(exist_ok=True)
    launcher = folder / "pulumi-resource-aws"
    launcher.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{ECHO}" "$@"\n')
    launcher.chmod(0o755)
    return folder
