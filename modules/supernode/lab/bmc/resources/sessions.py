"""SessionService: log in, look, log out."""

from __future__ import annotations

from supernode.lab.bmc.access import Session
from supernode.lab.bmc.controller import Bmc, timestamp
from supernode.lab.bmc.messages import RedfishError
from supernode.lab.bmc.resources.shape import HEALTHY, V1, collection, link, only, resource
from supernode.lab.bmc.routes import Body, Call, Reply, delete, get, patch, post

SERVICE = f"{V1}/SessionService"
SESSIONS = f"{SERVICE}/Sessions"
TIMEOUT_S = (30, 86400)


@get(SERVICE)
def service(bmc: Bmc, _call: Call) -> Body:
    """Tell the time-out."""
    body = resource("SessionService", SERVICE, "Session Service", Status=HEALTHY, ServiceEnabled=True)
    return body | {"SessionTimeout": bmc.state.session_timeout_s, "Sessions": link(SESSIONS)}


@patch(SERVICE, "ConfigureManager")
def set_service(bmc: Bmc, call: Call) -> Reply:
    """Set the time-out."""
    only(call.body, {"SessionTimeout": int}, ["Status", "ServiceEnabled", "Sessions"])
    seconds = call.body.get("SessionTimeout", bmc.state.session_timeout_s)
    if not TIMEOUT_S[0] <= seconds <= TIMEOUT_S[1]:
        raise RedfishError("PropertyValueOutOfRange", str(seconds), "SessionTimeout", related=["#/SessionTimeout"])
    bmc.state.session_timeout_s = seconds
    return Reply()


@get(SESSIONS)
def sessions(bmc: Bmc, call: Call) -> Body:
    """List who is logged in."""
    return collection("Session", SESSIONS, "Sessions", (_path(s) for s in bmc.access.sessions()), call)


@post(SESSIONS, privilege=None)
async def login(bmc: Bmc, call: Call) -> Reply:
    """Log in; the token is in the answer's header only."""
    only(call.body, {"UserName": str, "Password": str})
    for name in ("UserName", "Password"):
        if name not in call.body:
            raise RedfishError("PropertyMissing", name, related=[f"#/{name}"])
    session = await bmc.access.login(call.body["UserName"], call.body["Password"])
    body = _describe(bmc, session)
    if session.account.change_required:  # DSP0266, "Password change required handling"
        own = f"{V1}/AccountService/Accounts/{session.account.id}"
        body["@Message.ExtendedInfo"] = [RedfishError("PasswordChangeRequired", own).message]
    return Reply(201, body, {"X-Auth-Token": session.token, "Location": _path(session)})


@get(f"{SESSIONS}/{{}}")
def session(bmc: Bmc, call: Call) -> Body:
    """Show one login."""
    return _describe(bmc, _find(bmc, call))


@delete(f"{SESSIONS}/{{}}", "Login")
def logout(bmc: Bmc, call: Call) -> Reply:
    """Log out; another's session only with ConfigureUsers, which administrators have."""
    found = _find(bmc, call)
    if call.account is not found.account and (call.account is None or call.account.role != "Administrator"):
        raise RedfishError("InsufficientPrivilege")
    bmc.access.logout(found.id)
    return Reply()


def _find(bmc: Bmc, call: Call) -> Session:
    found = next((s for s in bmc.access.sessions() if s.id == call.ids[0]), None)
    if found is None:
        raise RedfishError("ResourceMissingAtURI", call.path)
    return found


def _path(session: Session) -> str:
    return f"{SESSIONS}/{session.id}"


def _describe(bmc: Bmc, session: Session) -> Body:
    body = resource("Session", _path(session), "User Session", UserName=session.account.name)
    return body | {"CreatedTime": timestamp(bmc.clock.told(session.created)), "SessionType": "Redfish"}
