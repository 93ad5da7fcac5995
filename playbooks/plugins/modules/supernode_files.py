"""Ansible module: a role's whole set of files, placed in one call."""

from __future__ import annotations

import json
import os
import pwd
import tempfile
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = r"""
module: supernode_files
short_description: Place a role's whole set of rendered files
description:
  - Writes each file of the set by way of a temporary one, so that a reader or a power cut sees the old text or the new.
  - Removes what it placed for the same role before and the set no longer names.
  - Keeps a record in C(/var/lib/supernode/files-<role>.json). Until I(state=applied) was called after a change, every
    run reports a change, so that a run that died between placing and applying is taken up by the next.
options:
  role:
    description: Whose set this is; the record's name.
    type: str
    required: true
  files:
    description: The set. Needed with I(state=placed).
    type: list
    elements: dict
    suboptions:
      path:
        description: Absolute path; missing folders above it are made with mode 0755.
        type: str
        required: true
      content:
        description: The whole text.
        type: str
        required: true
      mode:
        description: Octal, as a string.
        type: str
        default: "0644"
      owner:
        description: User; the group is that user's own.
        type: str
        default: root
  state:
    description: C(placed) puts the files in place; C(applied) records that the services took them up.
    type: str
    choices: [placed, applied]
    default: placed
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
author: The supernode project
"""

EXAMPLES = r"""
- name: Place the rails' files
  supernode_files:
    role: rails
    files: "{{ rails_files }}"
  notify: Rails changed
"""

RETURN = r"""
placed:
  description: Paths whose text, mode or owner changed.
  type: list
  returned: always
removed:
  description: Paths placed before and no longer in the set.
  type: list
  returned: always
pending:
  description: Whether an earlier change was never applied.
  type: bool
  returned: always
"""

RECORDS = Path("/var/lib/supernode")
FILE = {
    "path": {"type": "str", "required": True},
    "content": {"type": "str", "required": True},
    "mode": {"type": "str", "default": "0644"},
    "owner": {"type": "str", "default": "root"},
}


class Wanted:
    """One file of the set against what lies on the disk."""

    def __init__(self, path: str, content: str, mode: str, owner: str) -> None:
        account = pwd.getpwnam(owner)
        self.path, self.content = path, content
        self.mode, self.uid, self.gid = int(mode, 8), account.pw_uid, account.pw_gid
        self.before, self.attributes_before = self._look()

    def _look(self) -> tuple[str | None, tuple[int, int, int] | None]:
        place = Path(self.path)
        if place.is_symlink() or not place.exists():
            return None, None
        found = place.stat()
        with place.open(encoding="utf-8", errors="replace", newline="") as stream:
            return stream.read(), (found.st_mode & 0o7777, found.st_uid, found.st_gid)

    @property
    def differs(self) -> bool:
        return self.before != self.content or self.attributes_before != (self.mode, self.uid, self.gid)

    def diff(self) -> dict[str, str]:
        entry = {"before_header": self.path, "after_header": self.path}
        if self.before != self.content:
            return {**entry, "before": self.before or "", "after": self.content}
        mode, uid, gid = self.attributes_before or (0, 0, 0)
        after = f"mode {self.mode:04o} owner {self.uid}:{self.gid}\n"
        return {**entry, "before": f"mode {mode:04o} owner {uid}:{gid}\n", "after": after}

    def place(self) -> None:
        write(Path(self.path), self.content, self.mode, self.uid, self.gid)


def write(path: Path, content: str, mode: int, uid: int = 0, gid: int = 0) -> None:
    """Write a file that never exists by half, nor with the wrong mode or owner."""
    path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as stream:
            stream.write(content)
            stream.flush()
            os.fchmod(stream.fileno(), mode)
            os.fchown(stream.fileno(), uid, gid)
            os.fsync(stream.fileno())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


class Record:
    """What was placed for a role, and whether its services have taken it up."""

    def __init__(self, role: str) -> None:
        self.path = RECORDS / f"files-{role}.json"
        self.paths: list[str] = []
        self.applied = False
        if self.path.exists():
            document = json.loads(self.path.read_text(encoding="utf-8"))
            self.paths, self.applied = document["paths"], document["applied"]

    def save(self, paths: list[str], applied: bool) -> None:
        self.paths, self.applied = sorted(paths), applied
        write(self.path, json.dumps({"paths": self.paths, "applied": applied}, indent=2) + "\n", 0o600)


def placed(module: AnsibleModule, record: Record) -> dict[str, object]:
    """Bring the disk to the set; the record names every path before it is written, so that none is ever forgotten."""
    wanted = [Wanted(**entry) for entry in module.params["files"]]
    differing = [file for file in wanted if file.differs]
    paths = [file.path for file in wanted]
    stale = [path for path in record.paths if path not in paths and os.path.lexists(path)]
    pending = not record.applied
    changed = bool(differing or stale or pending)
    if changed and not module.check_mode:
        record.save(sorted({*record.paths, *paths}), applied=False)
        for file in differing:
            file.place()
        for path in stale:
            Path(path).unlink()
        record.save(paths, applied=False)
    removals = [{"before_header": p, "after_header": "(removed)", "before": p + "\n", "after": ""} for p in stale]
    return {
        "changed": changed,
        "placed": [file.path for file in differing],
        "removed": stale,
        "pending": pending,
        "diff": [file.diff() for file in differing] + removals,
    }


def applied(module: AnsibleModule, record: Record) -> dict[str, object]:
    """Record that the services run with what was placed."""
    changed = not record.applied
    if changed and not module.check_mode:
        record.save(record.paths, applied=True)
    return {"changed": changed, "placed": [], "removed": [], "pending": False}


def refuse_bad_paths(module: AnsibleModule) -> None:
    paths = [entry["path"] for entry in module.params["files"] or []]
    bad = [path for path in paths if os.path.normpath(path) != path or not path.startswith("/") or Path(path).is_dir()]
    twice = sorted({path for path in paths if paths.count(path) > 1})
    if bad or twice:
        module.fail_json(msg=f"not the absolute path of a file: {bad}; named twice: {twice}")


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "role": {"type": "str", "required": True},
            "files": {"type": "list", "elements": "dict", "options": FILE},
            "state": {"type": "str", "choices": ["placed", "applied"], "default": "placed"},
        },
        required_if=[("state", "placed", ["files"])],
        supports_check_mode=True,
    )
    refuse_bad_paths(module)
    act = placed if module.params["state"] == "placed" else applied
    try:
        module.exit_json(**act(module, Record(module.params["role"])))
    except (OSError, KeyError, ValueError) as error:
        module.fail_json(msg=f"{module.params['role']}: {error}")


if __name__ == "__main__":
    main()
