"""`supernode image`: what machines boot from, built before it is needed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from supernode.cli import inputs
from supernode.cli.output import emit, errors_end_the_process, say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from supernode.boot.image import ImageRef
    from supernode.boot.mirror import MirrorRef
    from supernode.boot.software import Software
    from supernode.boot.vendor import Vendor


def image(
    environment: Annotated[str, typer.Argument(help="a folder under inventories/, or a path")],
    as_json: Annotated[bool, typer.Option("--json", help="print digests, paths and versions as JSON")] = False,
) -> None:
    """Build an environment's golden image, package mirror and deploy parts, unless the cache has them.

    Building needs root. Where machines are bound to slots already, their deploy media are named, too. Where a vendor's
    key is not there yet (a lab's comes with its first start), the mirror is left to a later call or to the run.
    SUPERNODE_CACHE moves the cache; SUPERNODE_PINS=exact refuses to build when the archive has other versions.

    Example: sudo supernode image lab
    """
    from supernode.boot import facts, iso, vendor
    from supernode.boot import image as images
    from supernode.errors import Refusal

    folder, locate = inputs.find(environment)
    with errors_end_the_process(locate):
        design = inputs.design(folder)
        software = design.software()
        made = images.ensure(software, progress=say)
        packages = _mirror(software, made, vendor.of(design, folder.folder))
        base = iso.base(made, progress=say)
        try:
            media: dict[str, str] = dict(facts.write(folder, design, made, base).isos)
        except Refusal as refusal:
            say(f"no deploy media yet: {refusal.problems[0].what}")
            media = {}
    data = _data(made, packages, media)
    emit(data, as_json=as_json, text=lambda: _text(data))


def _mirror(software: Software, made: ImageRef, vendors: Sequence[Vendor]) -> MirrorRef | None:
    """Make the mirror; without a vendor's key there is none yet, and all else can be built before it comes."""
    from supernode.boot import mirror, vendor

    if lacking := vendor.without_key(vendors):
        say(f"no mirror yet: {lacking.where}: {lacking.what}; {lacking.hint}")
        return None
    return mirror.ensure(software, made, progress=say, vendors=vendors)


def _data(made: ImageRef, packages: MirrorRef | None, media: dict[str, str]) -> dict[str, Any]:
    return {
        "image": made.digest,
        "path": str(made.path),
        "size": made.size,
        "lock": str(made.lock),
        "mirror": str(packages.path) if packages else None,
        "mirrored": packages.packages if packages else {},
        "media": media,
    }


def _text(data: dict[str, Any]) -> str:
    return "\n".join(
        (
            f"image   {data['image'][:12]}  {data['size'] >> 20} MiB  {data['path']}",
            f"lock    {data['lock']}",
            f"mirror  {len(data['mirrored'])} packages  {data['mirror'] or ''}".rstrip(),
            f"media   {len(data['media'])} machines",
        )
    )
