"""`tools/setup` in a folder of its own, apt and its like replaced: no daemon starts, and nothing is left behind."""

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PACKAGES = (ROOT / "tools" / "debian-packages.txt").read_text()
APT = """#!/bin/sh
echo "apt-get $*" >>"$LOG"
case $* in *install*)
    "$POLICY"; echo "policy $?" >>"$LOG"
    exit "${APT_ENDS:-0}" ;;
esac
"""


@pytest.fixture
def place(tmp_path):
    (tmp_path / "tools").mkdir()
    script = (ROOT / "tools" / "setup").read_text()
    for real, own in (("/usr/sbin/policy-rc.d", "policy-rc.d"), ("/run/systemd/system", "systemd")):
        assert real in script
        script = script.replace(real, str(tmp_path / own))
    (tmp_path / "systemd").mkdir()
    write(tmp_path / "tools" / "setup", script)
    for name in ("tools/debian-packages.txt", "tools/uv-version.txt", "uv.lock"):
        (tmp_path / name).write_text((ROOT / name).read_text())
    version = (ROOT / "tools" / "uv-version.txt").read_text().split("uv==")[1].split()[0]
    write(tmp_path / ".venv-uv" / "bin" / "uv", f"#!/bin/sh\necho uv {version}\n")
    write(tmp_path / ".venv" / "bin" / "python", '#!/bin/sh\necho "$*" >>"${0%/*}/compiled"\n')
    write(tmp_path / "bin" / "apt-get", APT)
    write(tmp_path / "bin" / "systemctl", '#!/bin/sh\necho "systemctl $*" >>"$LOG"\n')
    write(tmp_path / "bin" / "sudo", '#!/bin/sh\nexec "$@"\n')
    has(tmp_path, "")
    return tmp_path


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


def has(place, names):
    """Let dpkg know of these packages, a shell pattern."""
    write(
        place / "bin" / "dpkg-query",
        f"#!/bin/sh\ncase $4 in {names or 'none'}) echo ok installed ;; *) exit 1 ;; esac\n",
    )


def setup(place, **environ):
    log = place / "log"
    log.unlink(missing_ok=True)
    own = {"LOG": str(log), "POLICY": str(place / "policy-rc.d"), "PATH": f"{place / 'bin'}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["/bin/sh", str(place / "tools" / "setup")],
        env={**os.environ, **own, **environ},
        capture_output=True,
        text=True,
    )
    return done, log.read_text() if log.exists() else ""


def test_no_daemon_starts_while_packages_come(place):
    done, log = setup(place)
    assert done.returncode == 0, done.stderr
    assert "debian-archive-keyring" in log
    assert "policy 101" in log
    assert "systemctl -q disable lldpd" in log
    assert not (place / "policy-rc.d").exists()


def test_a_failed_installation_leaves_no_policy_and_is_an_error(place):
    done, log = setup(place, APT_ENDS="100")
    assert done.returncode != 0
    assert "systemctl" not in log
    assert not (place / "policy-rc.d").exists()


def test_a_policy_that_was_there_stays(place):
    write(place / "policy-rc.d", "#!/bin/sh\nexit 104\n")
    done, log = setup(place)
    assert done.returncode == 0, done.stderr
    assert "policy 104" in log
    assert "104" in (place / "policy-rc.d").read_text()


def test_without_systemd_nothing_is_disabled(place):
    (place / "systemd").rmdir()
    done, log = setup(place)
    assert done.returncode == 0, done.stderr
    assert "systemctl" not in log


@pytest.mark.parametrize(("there", "fresh"), [("lldpd", "opensm"), ("opensm", "lldpd")])
def test_a_daemon_that_was_there_before_is_left_alone(place, there, fresh):
    has(place, there)
    done, log = setup(place)
    assert done.returncode == 0, done.stderr
    assert "apt-get" in log
    assert f"disable {there}" not in log
    assert f"systemctl -q disable {fresh}" in log


def test_with_everything_there_nothing_is_installed(place):
    has(place, "*")
    done, log = setup(place)
    assert (done.returncode, log) == (0, ""), done.stderr


def test_the_environment_is_compiled_once_a_lock(place):
    compiled = place / ".venv" / "bin" / "compiled"

    def environment():
        assert setup(place)[0].returncode == 0
        lines = compiled.read_text().splitlines()
        compiled.unlink()
        return [line for line in lines if "site-packages" in line]

    assert len(environment()) == 1
    assert environment() == []
    (place / "uv.lock").write_text("another")
    assert len(environment()) == 1


def test_every_line_is_a_package():
    names = [line.split("#")[0].strip() for line in PACKAGES.splitlines()]
    assert all(len(name.split()) <= 1 for name in names)
    assert len(set(filter(None, names))) == len(list(filter(None, names)))
