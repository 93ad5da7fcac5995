"""Apply a NoCloud seed once: name, host keys, network, trust, user. Runs before network and ssh, and is quick.

Power may go at any point: without the mark at its end all of it is done again, over whatever the first try left.

It reads the subset of cloud-config that our seed uses, in its JSON form (JSON is YAML), and says in the journal which
keys it left alone. A machine with stock cloud-init reads the same seed by that instead; see the unit.
"""

from __future__ import annotations

import base64
import json
import os
import pwd
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

ROOT = Path("/")
_HEADER = "#cloud-config"
HANDLED = frozenset(
    {"hostname", "fqdn", "users", "write_files", "ca_certs", "ssh_deletekeys", "ssh_genkeytypes"}
    # These say how stock cloud-init should behave; the image does so by itself.
    | {"disable_root", "ssh_pwauth", "apt", "manage_etc_hosts", "preserve_hostname", "prefer_fqdn_over_hostname"}
    | {"package_update", "package_upgrade", "growpart", "resize_rootfs", "network", "no_ssh_fingerprints"}
)

Run = Callable[..., object]
_WRITTEN = ("etc", "home", "usr/local/share/ca-certificates")
_FIRST_USER = 1000  # UID_MIN and GID_MIN of login.defs


def main() -> int:
    """Apply the seed, then leave the mark that keeps this from running again."""
    begun = time.time()
    seed = ROOT / "var/lib/cloud/seed/nocloud"
    meta = json.loads((seed / "meta-data").read_text(encoding="utf-8"))
    user = parse_user_data((seed / "user-data").read_text(encoding="utf-8"))
    network = json.loads((seed / "network-config").read_text(encoding="utf-8"))
    for key in sorted(set(user) - HANDLED):
        log(f"not applied: user-data key {key!r}")
    set_name(ROOT, user.get("hostname") or meta["local-hostname"], user.get("fqdn", ""))
    make_host_keys(ROOT)  # first: whatever fails below, no sshd runs with a key that others have, or with half of one
    write_network(ROOT, network)
    for record in user.get("write_files", ()):
        write_file(ROOT, record)
    trust(ROOT, user.get("ca_certs", {}).get("trusted", ()))
    for account in user.get("users", ()):
        make_user(ROOT, account)
    grow_root(ROOT)
    flush(ROOT, begun)
    leave_mark(ROOT, meta["instance-id"])
    return 0


def flush(root: Path, since: float) -> None:
    """Bring onto the disk what was written since then: a mark that is there before the host key is worse than none.

    File by file: where this machine is a container, a sync of everything is one of its host's whole disk.
    """
    for folder in _WRITTEN:
        for path in (root / folder).rglob("*"):
            if path.is_symlink() or not path.is_file() or path.stat().st_mtime < since - 1:
                continue
            handle = os.open(path, os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)


def leave_mark(root: Path, instance: str) -> None:
    """Write the mark; the enrolment waits for it."""
    mark = root / "var/lib/supernode/firstboot.done"
    mark.parent.mkdir(parents=True, exist_ok=True)
    mark.write_text(instance + "\n", encoding="utf-8")


def log(line: str) -> None:
    """Write a line to the journal."""
    sys.stderr.write(line + "\n")


def parse_user_data(text: str) -> dict[str, Any]:
    """Read `#cloud-config` with a JSON body.

    Raises:
        ValueError: another header (a script, an archive), or a body that is not JSON.
    """
    header, _, body = text.partition("\n")
    if header.strip() != _HEADER:
        raise ValueError(f"user-data begins with {header[:40]!r}, not {_HEADER}")
    document = json.loads(body)
    if not isinstance(document, dict):
        raise ValueError("user-data is not a mapping")
    return document


def set_name(root: Path, hostname: str, fqdn: str) -> None:
    """Set the name now and for later boots; the machine finds its own name without a name server."""
    (root / "etc/hostname").write_text(hostname + "\n", encoding="utf-8")
    names = f"{fqdn} {hostname}" if fqdn and fqdn != hostname else hostname
    lines = ["127.0.0.1 localhost", f"127.0.1.1 {names}", "::1 localhost ip6-localhost ip6-loopback"]
    (root / "etc/hosts").write_text("\n".join(lines) + "\n", encoding="utf-8")
    if root == Path("/"):
        socket.sethostname(hostname)


def write_network(root: Path, config: Mapping[str, Any]) -> None:
    """Write one systemd-networkd file for each port of a version 2 network-config, matched by MAC address."""
    folder = root / "etc/systemd/network"
    folder.mkdir(parents=True, exist_ok=True)
    for name, port in config.get("ethernets", {}).items():
        (folder / f"10-{name}.network").write_text(network_file(port), encoding="utf-8")
        servers = port.get("nameservers", {}).get("addresses", ())
        if servers:  # nothing else on the image keeps this file
            lines = "".join(f"nameserver {address}\n" for address in servers)
            (root / "etc/resolv.conf").write_text(lines, encoding="utf-8")
        if "set-name" in port:
            text = f"[Match]\nMACAddress={port['match']['macaddress']}\n\n[Link]\nName={port['set-name']}\n"
            (folder / f"10-{name}.link").write_text(text, encoding="utf-8")


def network_file(port: Mapping[str, Any]) -> str:
    """Return the .network file of one port; link-local addresses and router advertisements stay off."""
    lines = ["[Match]", f"MACAddress={port['match']['macaddress']}", "Type=ether", "", "[Network]"]
    lines += ["LinkLocalAddressing=no", "IPv6AcceptRA=no", f"DHCP={'yes' if port.get('dhcp4') else 'no'}"]
    lines += [f"Address={address}" for address in port.get("addresses", ())]
    servers = port.get("nameservers", {})
    lines += [f"DNS={address}" for address in servers.get("addresses", ())]
    if servers.get("search"):
        lines.append(f"Domains={' '.join(servers['search'])}")
    if "mtu" in port:
        lines += ["", "[Link]", f"MTUBytes={port['mtu']}"]
    for route in port.get("routes", ()):
        to = "0.0.0.0/0" if route["to"] == "default" else route["to"]
        lines += ["", "[Route]", f"Destination={to}", f"Gateway={route['via']}"]
        lines += [f"Metric={route['metric']}"] if "metric" in route else []
    return "\n".join(lines) + "\n"


def write_file(root: Path, record: Mapping[str, Any]) -> None:
    """Write one entry of write_files; its mode holds before its content is there."""
    path = root / record["path"].lstrip("/")
    path.parent.mkdir(parents=True, exist_ok=True)
    content = record.get("content", "")
    encoding = record.get("encoding", "text/plain")
    if encoding in ("b64", "base64"):
        data = base64.b64decode(content)
    elif encoding == "text/plain":
        data = content.encode()
    else:
        raise ValueError(f"write_files: {record['path']}: encoding {encoding!r}")
    mode = int(str(record.get("permissions", "0644")), 8)
    if record.get("append") and path.is_file() and path.read_bytes().endswith(data):
        data = b""  # a try that was cut off has appended it
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | (os.O_APPEND if record.get("append") else os.O_TRUNC), mode)
    with os.fdopen(handle, "wb") as stream:
        os.fchmod(handle, mode)
        stream.write(data)
    if record.get("owner", "root:root") not in ("root", "root:root"):
        owner, _, group = record["owner"].partition(":")
        shutil.chown(path, owner, group or None)


def trust(root: Path, certificates: list[str] | tuple[str, ...]) -> None:
    """Put certificates where update-ca-certificates finds them; supernode-trust.service runs it later: it is slow."""
    folder = root / "usr/local/share/ca-certificates"
    for number, pem in enumerate(certificates, 1):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"supernode-{number}.crt").write_text(pem, encoding="utf-8")


def make_user(root: Path, account: str | Mapping[str, Any], run: Run = subprocess.run) -> None:
    """Make an account with keys and sudo; its password is locked, and nothing in the seed can set one."""
    if isinstance(account, str):  # "default": the distribution's own user, of which this image has none
        return
    name = account["name"]
    groups = account.get("groups", [])
    listed = groups if isinstance(groups, str) else ",".join(groups)
    extra = ["--groups", listed] if listed else []
    _clear_account(root, name, run)
    run(
        ["useradd", "--root", str(root), "--create-home", "--shell", account.get("shell", "/bin/bash"), *extra, name],
        check=True,
    )
    rules = account.get("sudo") or ()
    rules = [rules] if isinstance(rules, str) else list(rules)
    if rules:
        text = "".join(f"{name} {rule}\n" for rule in rules)
        write_file(root, {"path": f"/etc/sudoers.d/90-{name}", "content": text, "permissions": "0440"})
    _authorise(root, name, account.get("ssh_authorized_keys", ()))


def _clear_account(root: Path, name: str, run: Run) -> None:
    """Remove what a first boot that was cut off left of an account: half of one cannot be told from a whole one.

    Nobody has logged in to it: ssh starts after the first boot. Accounts of the system are left for useradd to refuse.
    """
    for file in ("passwd", "shadow", "group", "gshadow", "subuid", "subgid"):  # locks by a process that is gone
        (root / f"etc/{file}.lock").unlink(missing_ok=True)
    if _number(root / "etc/passwd", name) >= _FIRST_USER:
        run(["userdel", "--root", str(root), "--force", "--remove", name], check=False)
    if _number(root / "etc/group", name) >= _FIRST_USER:
        run(["groupdel", "--root", str(root), name], check=False)
    if (home := root / "home" / name).is_dir():
        shutil.rmtree(home)


def _number(file: Path, name: str) -> int:
    """Return the id of an account or a group by its line in the file; -1 when it has none."""
    lines = file.read_text(encoding="utf-8").splitlines() if file.is_file() else []
    return next((int(line.split(":")[2]) for line in lines if line.startswith(f"{name}:")), -1)


def _authorise(root: Path, name: str, keys: list[str] | tuple[str, ...]) -> None:
    home = root / "home" / name
    folder = home / ".ssh"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    file = folder / "authorized_keys"
    file.write_text("".join(f"{key.strip()}\n" for key in keys), encoding="utf-8")
    file.chmod(0o600)
    if root == Path("/"):
        entry = pwd.getpwnam(name)
        for path in (folder, file):
            os.chown(path, entry.pw_uid, entry.pw_gid)


def make_host_keys(root: Path, run: Run = subprocess.run) -> None:
    """Make this machine's own host key; whatever key is there came with an image and is everyone's."""
    folder = root / "etc/ssh"
    for old in folder.glob("ssh_host_*"):
        old.unlink()
    key = folder / "ssh_host_ed25519_key"
    run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", socket.gethostname(), "-f", str(key)], check=True)


def partition_of(path: Path) -> tuple[str, str, str] | None:
    """Return (disk, number, partition) under a path, as in ("/dev/vda", "2", "/dev/vda2"), or None."""
    device = path.stat().st_dev
    node = Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}")
    if not (node / "partition").is_file():
        return None
    place = node.resolve()
    return f"/dev/{place.parent.name}", (node / "partition").read_text().strip(), f"/dev/{place.name}"


def grow_root(root: Path, run: Run = subprocess.run) -> None:
    """Grow the root partition, which is the last, to the end of its disk, and the file system with it.

    Where the root is no partition of a disk (an overlay, a network file system) there is nothing to grow. A failure
    costs space, not the machine, so it is logged and the boot goes on.
    """
    where = partition_of(root)
    if where is None:
        return
    disk, number, part = where
    try:
        run(["sfdisk", "--quiet", "--no-reread", "--force", "-N", number, disk], input=b", +\n", check=True)
        run(["partx", "--update", "--nr", number, disk], check=True)
        run(["resize2fs", part], check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        log(f"root not grown: {error}")


if __name__ == "__main__":
    sys.exit(main())
