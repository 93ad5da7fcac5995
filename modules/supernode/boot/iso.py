"""One machine's deploy medium: a UEFI ISO with kernel, initrd and the machine's seed.

The digest of a medium is computed from what goes in (the parts' digest, the seed, the kernel arguments), never from a
built file, and leaves out the one-time token: it is known before anything is built and names the medium in its URL.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib import resources
from pathlib import Path

from supernode.boot import cache as store
from supernode.boot import grub, rootfs, tool
from supernode.boot.cache import Progress
from supernode.boot.deploy import parts
from supernode.boot.image import ImageRef

SEED = ("meta-data", "user-data", "network-config")
VOLUME = "SUPERNODE"

_FORMAT = 3
_EFI_KIB = 2880


@dataclass(frozen=True)
class Base:
    """What is the same on every medium, built once.

    Attributes:
        folder: holds vmlinuz, initrd.img and efi.img.
    """

    digest: str
    folder: Path


@dataclass(frozen=True)
class Arguments:
    """What the deploy step is told by the kernel's command line; none of it is secret.

    Attributes:
        image: URL of the compressed image.
        digest: SHA-256 of the raw image.
        size: bytes of the raw image, whole MiB.
        disk: the name to write to, as under /dev/disk/by-id; a shell pattern that one disk must match.
        report: URL that takes this machine's reports.
        port: "<mac>,<address>/<prefix>,<gateway or nothing>" of the management port.
    """

    image: str
    digest: str
    size: int
    disk: str
    report: str
    port: str


def port_of(network_config: str) -> str:
    """Return the `port` argument from a seed's network-config (JSON, version 2).

    Raises:
        ValueError: no port that is matched by MAC address and has an address.
    """
    for port in json.loads(network_config).get("ethernets", {}).values():
        mac = port.get("match", {}).get("macaddress", "")
        if mac and port.get("addresses"):
            routes = [route["via"] for route in port.get("routes", ()) if route["to"] in ("default", "0.0.0.0/0")]
            return f"{mac.lower()},{port['addresses'][0]},{routes[0] if routes else ''}"
    raise ValueError("network-config has no port with a MAC address to match and an address")


def base_digest(image: ImageRef) -> str:
    """Return the digest of what every medium of this image shares."""
    return store.digest_of(
        {
            "format": str(_FORMAT).encode(),
            "parts": image.deploy_digest.encode(),
            "init": _init(),
            "loader": grub.medium_config(VOLUME).encode(),
        }
    )


def digest(shared: str, seed: Mapping[str, str], ca: str, arguments: Arguments, secret: str) -> str:
    """Return the digest (SHA-256, hex) of one machine's medium; pure.

    Args:
        shared: digest of what all media share.
        seed: the seed's files.
        ca: PEM of the server's CA.
        arguments: the kernel's.
        secret: the site's own; all the rest can be known to whoever knows the site, and the digest is the address.
    """
    inputs = {"secret": secret.encode()}
    inputs |= {f"seed/{name}": seed[name].encode() for name in SEED}
    inputs |= {
        "base": shared.encode(),
        "ca": ca.encode(),
        "arguments": json.dumps(asdict(arguments), sort_keys=True).encode(),
    }
    return store.digest_of(inputs)


def base(image: ImageRef, cache: Path | None = None, progress: Progress = store.silent) -> Base:
    """Return what all media of an image share, building it (a second) when the cache has none.

    Raises:
        CouldNotRun: grub-mkimage, mtools or cpio is missing.
    """
    name = base_digest(image)

    def make(work: Path) -> None:
        progress("media: kernel, tools and boot loader")
        _build_base(image, work)

    return Base(name, store.place(cache or store.default(), "deploy", name, make))


def build(shared: Base, seed: Mapping[str, str], ca: str, token: str, arguments: Arguments, target: Path) -> None:
    """Write one machine's medium (about 0.2 s); the file is mode 0600, for the token is in it.

    Raises:
        CouldNotRun: xorriso is missing or failed.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    work = target.with_name(f".{target.name}.parts")
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(mode=0o700)
    try:
        files = {**{name: seed[name] for name in SEED}, "ca.pem": ca, "token": f"{token}\n"}
        for name, text in files.items():
            (work / name).write_text(text, encoding="utf-8")
        (work / "grub.cfg").write_text(grub_config(arguments), encoding="utf-8")
        _write_seed(work, tuple(files))
        unfinished = work / "iso"
        _write_iso(shared, work, tuple(files), unfinished)
        unfinished.chmod(0o600)
        unfinished.replace(target)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def grub_config(arguments: Arguments) -> str:
    """Return the medium's menu. Arguments are quoted: the boot loader would expand a pattern otherwise."""
    words = " ".join(f"'supernode.{name}={value}'" for name, value in asdict(arguments).items())
    return f"""\
set timeout=0
serial --unit=0 --speed=115200
terminal_output console serial
menuentry 'supernode deploy' {{
linux /boot/vmlinuz {words} {grub.CONSOLE} panic=60
initrd /boot/initrd.img /boot/seed.img
}}
"""


def _init() -> bytes:
    return (resources.files("supernode.boot") / "deploy" / "init").read_bytes()


def _build_base(image: ImageRef, work: Path) -> None:
    source = image.path.with_name("deploy")
    shutil.copyfile(source / "vmlinuz", work / "vmlinuz")
    tree = work / "tree"
    tree.mkdir()
    (tree / "init").write_bytes(_init())
    (tree / "init").chmod(0o755)
    parts.pack(tree, work / "initrd.img", rootfs.EPOCH)
    shutil.rmtree(tree)
    # The kernel unpacks archives one after the other: ours first, since a compressed one must be the last.
    with (work / "initrd.img").open("ab") as stream:
        stream.write((source / "tools.cpio.zst").read_bytes())
    _write_efi(work)


def _write_efi(work: Path) -> None:
    """Write the small FAT image that firmware loads the boot loader from."""
    image, loader = work / "efi.img", work / "BOOTX64.EFI"
    grub.write_loader(loader, ("iso9660", "part_gpt", "part_msdos", "fat"), grub.medium_config(VOLUME))
    with image.open("wb") as stream:
        stream.truncate(_EFI_KIB * 1024)
    tool.run(["mkfs.vfat", "-F", "12", "--invariant", "-i", "53555045", image])
    env = {"SOURCE_DATE_EPOCH": str(rootfs.EPOCH), "TZ": "UTC"}
    tool.run(["mmd", "-i", image, "::/EFI", "::/EFI/BOOT"], env=env)
    tool.run(["mcopy", "-i", image, loader, "::/EFI/BOOT/"], env=env)
    loader.unlink()


def _write_seed(work: Path, names: tuple[str, ...]) -> None:
    """Write the seed as an archive for the boot loader: the deploy step needs no driver of the drive."""
    tree = work / "tree" / "seed"
    tree.mkdir(parents=True)
    for name in names:
        shutil.copyfile(work / name, tree / name)
    parts.pack(tree.parent, work / "seed.img", rootfs.EPOCH)


def _write_iso(shared: Base, work: Path, seed: tuple[str, ...], target: Path) -> None:
    grafts = [f"/boot/{name}={shared.folder / name}" for name in ("vmlinuz", "initrd.img", "efi.img")]
    grafts += [
        f"/boot/grub/grub.cfg={work / 'grub.cfg'}",
        f"/boot/seed.img={work / 'seed.img'}",
        *(f"/seed/{name}={work / name}" for name in seed),
    ]
    tool.run(
        [
            "xorriso", "-no_rc", "-as", "mkisofs", "-quiet", "-R", "-V", VOLUME, "-uid", "0", "-gid", "0",
            "--set_all_file_dates", f"={rootfs.EPOCH}", "-graft-points",
            "-e", "boot/efi.img", "-no-emul-boot", "-o", target, *grafts,
        ],
        env={"SOURCE_DATE_EPOCH": str(rootfs.EPOCH)},
    )  # fmt: skip
