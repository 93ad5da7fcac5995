"""Names of media, their menu, and the seed that both first boots can read."""

import dataclasses
import json
import shlex
from pathlib import Path

import pytest

from supernode import design, spec
from supernode.boot import iso, media, tls
from supernode.boot.deploy import parts
from supernode.boot.disk import Partition
from supernode.boot.host import firstboot
from supernode.boot.image import ImageRef
from supernode.boot.media import SiteTrust
from supernode.errors import Refusal
from supernode.spec import Identity, Machines, SlotRecord
from supernode.workspace import EnvironmentFolder

LAB = (Path(__file__).resolve().parents[3] / "tests/lab/slim/environment.yml").read_text(encoding="utf-8")
SEED = {"meta-data": "{}", "user-data": "#cloud-config\n{}", "network-config": "{}"}
ARGUMENTS = iso.Arguments(
    image="https://198.18.31.253:8443/images/ab.raw.zst",
    digest="ab" * 32,
    size=512 << 20,
    disk="/dev/disk/by-id/virtio-*",
    report="https://198.18.31.253:8443/report/gpu-001",
    port="02:00:00:00:00:11,198.18.0.11/23,198.18.0.1",
)


TRUST = SiteTrust("-----BEGIN CERTIFICATE-----", "ab" * 32)


@pytest.fixture(scope="module")
def image(tmp_path_factory):
    return ImageRef("ab" * 32, tmp_path_factory.mktemp("image") / "image.raw", 512 << 20, Partition(1, 2), "cd" * 32)


@pytest.fixture(scope="module")
def designed():
    bare = design.build(spec.read({"environment": LAB}))
    bound = {
        host.slot: SlotRecord(identity=Identity(management_mac=f"02:00:00:00:00:{host.ordinal:02x}"))
        for host in bare.hosts
    }
    return design.build(spec.read({"environment": LAB, "machines": spec.machines_text(Machines(slots=bound))}))


def test_a_digest_changes_with_each_thing_on_the_medium():
    digests = {
        iso.digest("base", SEED, "ca", ARGUMENTS, "s"),
        iso.digest("other", SEED, "ca", ARGUMENTS, "s"),
        iso.digest("base", {**SEED, "user-data": "#cloud-config\n{ }"}, "ca", ARGUMENTS, "s"),
        iso.digest("base", SEED, "another ca", ARGUMENTS, "s"),
        iso.digest("base", SEED, "ca", ARGUMENTS, "another secret"),
        *(
            iso.digest("base", SEED, "ca", dataclasses.replace(ARGUMENTS, **{name: getattr(ARGUMENTS, name) * 2}), "s")
            for name in (field.name for field in dataclasses.fields(ARGUMENTS))
        ),
    }
    assert len(digests) == 5 + len(dataclasses.fields(ARGUMENTS))


def test_the_menu_gives_every_argument_as_one_word_that_nothing_expands():
    line = next(line for line in iso.grub_config(ARGUMENTS).splitlines() if line.startswith("linux"))
    words = dict(word.split("=", 1) for word in shlex.split(line) if word.startswith("supernode."))
    assert words == {f"supernode.{name}": str(value) for name, value in dataclasses.asdict(ARGUMENTS).items()}
    assert "'supernode.disk=/dev/disk/by-id/virtio-*'" in line


def test_the_port_is_read_from_the_network_config():
    port = {"match": {"macaddress": "02:AA:00:00:00:11"}, "addresses": ["198.18.0.11/23"]}
    routed = {**port, "routes": [{"to": "10.0.0.0/8", "via": "198.18.0.9"}, {"to": "default", "via": "198.18.0.1"}]}
    assert iso.port_of(json.dumps({"ethernets": {"m": port}})) == "02:aa:00:00:00:11,198.18.0.11/23,"
    assert iso.port_of(json.dumps({"ethernets": {"m": routed}})) == "02:aa:00:00:00:11,198.18.0.11/23,198.18.0.1"
    with pytest.raises(ValueError, match="no port"):
        iso.port_of(json.dumps({"ethernets": {"m": {"addresses": ["198.18.0.11/23"]}}}))


def test_every_machine_has_a_medium_of_its_own_under_its_own_name(designed, image):
    planned = media.plan(designed, image, "base", TRUST, "ssh-ed25519 AAAA")
    assert set(planned) == {host.name for host in designed.hosts}
    assert len({medium.digest for medium in planned.values()}) == len(planned)
    one = planned["gpu-003"]
    assert one.url == f"https://198.18.31.253:8443/boot/gpu-003/{one.digest}.iso"
    assert one.arguments.report == "https://198.18.31.253:8443/report/gpu-003"
    assert one.arguments.port.startswith("02:00:00:00:00:03,198.18.0.13/23,")
    assert one.arguments.image == f"https://198.18.31.253:8443/images/{image.digest}.raw.zst"


def test_slots_without_a_machine_are_all_named_at_once(image):
    bare = design.build(spec.read({"environment": LAB}))
    with pytest.raises(Refusal) as caught:
        media.plan(bare, image, "base", TRUST, "key")
    assert len(caught.value.problems) == len(bare.hosts)


def test_first_boot_knows_every_key_of_the_seed(designed, image):
    seed = media.medium(designed, "gpu-001", image, "base", TRUST, "ssh-ed25519 AAAA").seed
    user = firstboot.parse_user_data(seed["user-data"])
    assert set(user) <= firstboot.HANDLED
    assert user["hostname"] == "gpu-001"
    assert json.loads(seed["meta-data"])["instance-id"].startswith("gpu-001-")
    port = next(iter(json.loads(seed["network-config"])["ethernets"].values()))
    assert "Address=198.18.0.11/23" in firstboot.network_file(port)


def test_drivers_come_with_what_they_need_and_nothing_else():
    dep = (
        "kernel/a/nvme.ko: kernel/a/nvme-core.ko kernel/b/crc.ko\nkernel/a/nvme-core.ko: kernel/b/crc.ko\n"
        "kernel/b/crc.ko:\nkernel/c/sound.ko:\n"
    )
    files = parts.closure(["nvme", "not_here"], dep)
    assert files == ["kernel/a/nvme-core.ko", "kernel/a/nvme.ko", "kernel/b/crc.ko"]
    assert "sound" not in parts.keep_files(dep, files)
    aliases = "# made by depmod\nalias pci:v*bc01sc08i02* nvme\nalias pci:snd* sound\nalias x nvme_core\n"
    assert parts.keep_aliases(aliases, files) == "alias pci:v*bc01sc08i02* nvme\nalias x nvme_core\n"


def test_who_knows_all_of_a_site_but_its_secret_cannot_tell_an_address(designed, image):
    """Known bad: every input of the address was public (names, MACs, CA certificate, public key), so it was, too."""
    known = {name: SiteTrust(TRUST.ca, secret) for name, secret in (("ours", "ab" * 32), ("guess", "ac" * 32))}
    ours, guess = (media.plan(designed, image, "base", trust, "ssh-ed25519 AAAA") for trust in known.values())
    assert {m.digest for m in ours.values()}.isdisjoint(m.digest for m in guess.values())
    assert all(len(bytes.fromhex(m.digest)) * 8 >= 128 for m in ours.values())
    assert ours["gpu-001"].seed == guess["gpu-001"].seed
    assert "ab" * 32 not in repr(known["ours"])


def test_the_secret_is_as_long_as_it_looks_and_the_site_s_own(tmp_path):
    found = []
    for name in ("one", "two"):
        place = tmp_path / "inventories" / name
        place.mkdir(parents=True)
        folder = EnvironmentFolder(name, place, tmp_path)
        trust = tls.trust(folder, tls.ensure(folder, "127.0.0.1"))
        assert trust == tls.trust(folder, tls.ensure(folder, "127.0.0.2"))  # another address of the server: the same
        assert len(bytes.fromhex(trust.secret)) == 32
        assert trust.secret not in "".join(p.read_text() for p in tmp_path.rglob("*") if p.is_file())
        found.append(trust.secret)
    assert found[0] != found[1]
