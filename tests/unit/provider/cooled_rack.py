"""A rack slot on loopback with the cooling unit that serves it, by either protocol."""

import asyncio
from contextlib import asynccontextmanager

from rack import rack

from supernode.lab.artefacts import CoolingUnit
from supernode.lab.cooling.hall import Hall
from supernode.lab.factory import Factory

KINDS = {"cdu1": "lab-cdu-modbus", "cdu2": "lab-cdu-redfish"}
MAX_AGE_S = 2.5


@asynccontextmanager
async def cooled(folder, kind="cdu1", *, runs=True, **changes):
    """A rack slot and the unit that cools it, which measures anew as its kind does."""
    made = Factory(folder / "factory")
    hall = Hall(
        [CoolingUnit(kind, KINDS[kind], "127.0.0.1", 0, ("r01",), "reader")], folder / "factory", made, lambda _: 6e3
    )
    await hall.open()
    ageing = asyncio.create_task(hall.run()) if runs else None
    (folder / "cdu-password").write_text(made.unit_password(kind))
    (folder / "cdu-password").chmod(0o600)
    secret = {"username": "reader", "password": "file:cdu-password", "ca": "factory/ca/ca.pem"}
    unit = {"unit": kind, "kind": KINDS[kind], "address": "127.0.0.1", "port": hall._fronts[kind].port}
    interlock = {**unit, **(secret if kind == "cdu2" else {}), "minFlow": 0.0005, "maxAgeS": MAX_AGE_S}
    try:
        async with rack(folder, interlock=interlock, **changes) as stand:
            stand.hall = hall
            yield stand
    finally:
        if ageing:
            ageing.cancel()
        await hall.close()
