"""What virtual media and UEFI's HTTP boot trust; the same collection in two places."""

from __future__ import annotations

from supernode.lab.bmc.controller import Bmc
from supernode.lab.bmc.media import add_certificate, describe_certificate
from supernode.lab.bmc.messages import RedfishError
from supernode.lab.bmc.resources.shape import V1, collection, only, resource
from supernode.lab.bmc.routes import Body, Call, Reply, delete, get, post

PLACES = {
    f"{V1}/Managers/1/VirtualMedia/Cd/Certificates": "media",
    f"{V1}/Systems/1/Boot/Certificates": "boot",
}


def _every(bmc: Bmc, call: Call) -> Body:
    paths = (f"{call.path}/{number}" for number in bmc.state.certificates[PLACES[call.path]])
    return collection("Certificate", call.path, "Certificates", paths, call)


def _add(bmc: Bmc, call: Call) -> Reply:
    only(call.body, {"CertificateString": str, "CertificateType": str})
    if not call.body.get("CertificateString"):
        raise RedfishError("PropertyMissing", "CertificateString", related=["#/CertificateString"])
    kind = call.body.get("CertificateType", "PEM")
    if kind != "PEM":
        raise RedfishError("PropertyValueNotInList", kind, "CertificateType", related=["#/CertificateType"])
    number = add_certificate(bmc.state.certificates[PLACES[call.path]], call.body["CertificateString"])
    path = f"{call.path}/{number}"
    return Reply(201, _describe(bmc, path), {"Location": path})


def _one(bmc: Bmc, call: Call) -> Body:
    return _describe(bmc, call.path)


def _remove(bmc: Bmc, call: Call) -> Reply:
    _describe(bmc, call.path)
    place, _, number = call.path.rpartition("/")
    del bmc.state.certificates[PLACES[place]][number]
    return Reply()


def _describe(bmc: Bmc, path: str) -> Body:
    place, _, number = path.rpartition("/")
    pem = bmc.state.certificates[PLACES[place]].get(number)
    if pem is None:
        raise RedfishError("ResourceMissingAtURI", path)
    return resource("Certificate", path, "Certificate", **describe_certificate(pem))


for _path in PLACES:
    get(_path)(_every)
    post(_path, "ConfigureManager")(_add)
    get(f"{_path}/{{}}")(_one)
    delete(f"{_path}/{{}}", "ConfigureManager")(_remove)
