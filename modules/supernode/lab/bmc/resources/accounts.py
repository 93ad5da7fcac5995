"""AccountService: users, their passwords and roles."""

from __future__ import annotations

import asyncio

from supernode.lab.bmc.access import PASSWORD_LENGTH, ROLES, hash_password
from supernode.lab.bmc.controller import Bmc
from supernode.lab.bmc.messages import RedfishError
from supernode.lab.bmc.resources.shape import HEALTHY, V1, collection, link, only, resource
from supernode.lab.bmc.routes import Body, Call, Reply, delete, get, patch, post
from supernode.lab.bmc.state import Account

SERVICE = f"{V1}/AccountService"
ACCOUNTS = f"{SERVICE}/Accounts"
ROLE = f"{SERVICE}/Roles"
WRITABLE = {"UserName": str, "Password": str, "RoleId": str, "Enabled": bool}


@get(SERVICE)
def service(bmc: Bmc, _call: Call) -> Body:
    """Tell the rules for passwords."""
    return resource(
        "AccountService",
        SERVICE,
        "Account Service",
        Status=HEALTHY,
        ServiceEnabled=True,
        MinPasswordLength=PASSWORD_LENGTH[0],
        MaxPasswordLength=PASSWORD_LENGTH[1],
        AccountLockoutThreshold=bmc.habits.lockout_after,
        AccountLockoutDuration=int(bmc.habits.lockout_s),
        Accounts=link(ACCOUNTS),
        Roles=link(ROLE),
    )


@get(ROLE)
def roles(_bmc: Bmc, call: Call) -> Body:
    """List the roles."""
    return collection("Role", ROLE, "Roles", (f"{ROLE}/{name}" for name in ROLES), call)


@get(f"{ROLE}/{{}}")
def role(_bmc: Bmc, call: Call) -> Body:
    """Show what a role may do."""
    name = call.ids[0]
    if name not in ROLES:
        raise RedfishError("ResourceMissingAtURI", call.path)
    body = resource("Role", call.path, f"{name} role", RoleId=name, IsPredefined=True)
    return body | {"AssignedPrivileges": list(ROLES[name])}


@get(ACCOUNTS)
def accounts(bmc: Bmc, call: Call) -> Body:
    """List the users."""
    return collection("ManagerAccount", ACCOUNTS, "Accounts", (f"{ACCOUNTS}/{a.id}" for a in bmc.state.accounts), call)


@post(ACCOUNTS, "ConfigureUsers")
async def create(bmc: Bmc, call: Call) -> Reply:
    """Add a user."""
    only(call.body, WRITABLE)
    for name in ("UserName", "Password", "RoleId"):
        if not call.body.get(name):
            raise RedfishError("PropertyMissing", name, related=[f"#/{name}"])
    _check_names(bmc, None, call)
    password = call.body["Password"]
    if not PASSWORD_LENGTH[0] <= len(password) <= PASSWORD_LENGTH[1]:
        raise RedfishError("PropertyValueFormatError", "******", "Password", related=["#/Password"])
    hashed = await asyncio.to_thread(hash_password, password)
    number = str(max((int(each.id) for each in bmc.state.accounts), default=0) + 1)
    account = Account(number, call.body["UserName"], call.body["RoleId"], hashed, call.body.get("Enabled", True))
    bmc.state.accounts.append(account)
    path = f"{ACCOUNTS}/{number}"
    return Reply(201, _describe(bmc, account, path), {"Location": path})


@get(f"{ACCOUNTS}/{{}}")
def account(bmc: Bmc, call: Call) -> Body:
    """Show a user; the password is null, always."""
    found = _find(bmc, call)
    if call.account is not found and (call.account is None or call.account.role != "Administrator"):
        raise RedfishError("InsufficientPrivilege")
    return _describe(bmc, found, call.path)


@patch(f"{ACCOUNTS}/{{}}", "ConfigureUsers")
async def change(bmc: Bmc, call: Call) -> Reply:
    """Change a user; without ConfigureUsers only the own password."""
    found = _find(bmc, call)
    only(call.body, WRITABLE, ["Locked", "PasswordChangeRequired", "Links"])
    if call.account is None or (call.account.role != "Administrator" and set(call.body) != {"Password"}):
        raise RedfishError("InsufficientPrivilege")
    _check_names(bmc, found, call)
    if "Password" in call.body:
        await bmc.access.set_password(found, call.body["Password"])
    found.name = call.body.get("UserName", found.name)
    found.role = call.body.get("RoleId", found.role)
    found.enabled = call.body.get("Enabled", found.enabled)
    return Reply()


@delete(f"{ACCOUNTS}/{{}}", "ConfigureUsers")
def remove(bmc: Bmc, call: Call) -> Reply:
    """Remove a user, but not oneself."""
    found = _find(bmc, call)
    if found is call.account:
        raise RedfishError("ResourceInUse")
    bmc.state.accounts.remove(found)
    bmc.access.forget(found)
    return Reply()


def _find(bmc: Bmc, call: Call) -> Account:
    found = next((a for a in bmc.state.accounts if a.id == call.ids[0]), None)
    if found is None:
        raise RedfishError("ResourceMissingAtURI", call.path)
    return found


def _check_names(bmc: Bmc, found: Account | None, call: Call) -> None:
    role_id, name = call.body.get("RoleId"), call.body.get("UserName")
    if role_id is not None and role_id not in ROLES:
        raise RedfishError("PropertyValueNotInList", role_id, "RoleId", related=["#/RoleId"])
    if name is not None and any(a.name == name and a is not found for a in bmc.state.accounts):
        raise RedfishError("ResourceAlreadyExists", "ManagerAccount", "UserName", name)


def _describe(bmc: Bmc, account: Account, path: str) -> Body:
    return resource(
        "ManagerAccount",
        path,
        "User Account",
        UserName=account.name,
        Password=None,
        RoleId=account.role,
        Enabled=account.enabled,
        Locked=bmc.access.locked(account.name),
        PasswordChangeRequired=account.change_required,
        AccountTypes=["Redfish"],
        Links={"Role": link(f"{ROLE}/{account.role}")},
    )
