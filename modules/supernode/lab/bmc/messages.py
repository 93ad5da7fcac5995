"""Redfish errors: what a handler raises, and the ExtendedInfo document that goes out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

REGISTRY = "Base.1.18"

# Message key of the DMTF Base registry -> (HTTP status, severity, text with %1 …, resolution).
_MESSAGES: dict[str, tuple[int, str, str, str]] = {
    "ActionNotSupported": (
        400,
        "Critical",
        "The action %1 is not supported here.",
        "Call an action that the resource lists.",
    ),
    "ActionParameterMissing": (400, "Critical", "The action %1 needs the parameter %2.", "Send the parameter."),
    "ActionParameterUnknown": (400, "Warning", "The action %1 knows no parameter %2.", "Leave the parameter out."),
    "ActionParameterValueNotInList": (
        400,
        "Warning",
        "The value '%1' of %2 of the action %3 is not allowed.",
        "Use one of the allowable values.",
    ),
    "ActionParameterValueTypeError": (
        400,
        "Warning",
        "The value '%1' of %2 of the action %3 has the wrong type.",
        "Correct the type.",
    ),
    "CouldNotEstablishConnection": (400, "Critical", "No connection to %1.", "Check address, server and certificates."),
    "GeneralError": (400, "Critical", "A general error has occurred.", "None."),
    "InsufficientPrivilege": (
        403,
        "Critical",
        "The account lacks the privilege for this.",
        "Use an account of another role.",
    ),
    "InternalError": (500, "Critical", "The service failed internally.", "Try again; then reset the service."),
    "MalformedJSON": (400, "Critical", "The body is no JSON object.", "Correct the body."),
    "NoValidSession": (401, "Critical", "No valid session or credentials.", "Log in."),
    "OperationNotAllowed": (405, "Critical", "The method is not allowed on this resource.", "See the Allow header."),
    "PasswordChangeRequired": (
        403,
        "Critical",
        "The password of %1 must be changed first.",
        "PATCH the account's Password.",
    ),
    "PreconditionFailed": (412, "Critical", "The ETag is not the resource's present one.", "Read the resource again."),
    "PreconditionRequired": (
        428,
        "Critical",
        "The request needs If-Match.",
        "Send the ETag of the last GET in If-Match.",
    ),
    "PropertyMissing": (400, "Warning", "The property %1 is required.", "Send the property."),
    "PropertyNotWritable": (400, "Warning", "The property %1 is read-only.", "Leave the property out."),
    "PropertyUnknown": (400, "Warning", "The property %1 is not known to this resource.", "Leave the property out."),
    "PropertyValueFormatError": (400, "Warning", "The value '%1' of %2 has the wrong form.", "Correct the value."),
    "PropertyValueNotInList": (
        400,
        "Warning",
        "The value '%1' of %2 is not allowed.",
        "Use one of the allowable values.",
    ),
    "PropertyValueOutOfRange": (400, "Warning", "The value '%1' of %2 is out of range.", "Correct the value."),
    "PropertyValueTypeError": (400, "Warning", "The value '%1' of %2 has the wrong type.", "Correct the type."),
    "QueryParameterValueTypeError": (
        400,
        "Warning",
        "The value '%1' of the query parameter %2 has the wrong type.",
        "Correct the type.",
    ),
    "ResourceAlreadyExists": (409, "Critical", "A %1 with %2 '%3' exists already.", "Use another name."),
    "ResourceAtUriUnauthorized": (401, "Critical", "%1 refuses access: %2", "Check the credentials for it."),
    "ResourceInUse": (409, "Warning", "The resource is in use or changing its state.", "Try again later."),
    "ResourceMissingAtURI": (404, "Critical", "There is no resource at %1.", "Follow the links from the service root."),
    "ServiceTemporarilyUnavailable": (503, "Critical", "The service is busy. Try again in %1 seconds.", "Wait."),
    "SessionLimitExceeded": (
        503,
        "Critical",
        "All sessions are taken.",
        "Delete a session, or wait for one to time out.",
    ),
}


class RedfishError(Exception):
    """A request that cannot be done, as the Base registry names it.

    Args:
        key: a key of the Base registry, without version.
        arguments: what %1 … stand for.
        status: the HTTP status where it is not the registry's usual one.
        related: JSON pointers of the properties concerned, e.g. "#/Attributes/SriovEnable".
        headers: to be sent with the answer.
    """

    def __init__(
        self,
        key: str,
        *arguments: str,
        status: int | None = None,
        related: Sequence[str] = (),
        headers: dict[str, str] | None = None,
    ) -> None:
        self.key, self.arguments, self.related = key, arguments, tuple(related)
        self.status = _MESSAGES[key][0] if status is None else status
        self.headers = headers or {}
        super().__init__(self.message["Message"])

    @property
    def message(self) -> dict[str, Any]:
        """The Message object of @Message.ExtendedInfo."""
        _, severity, text, resolution = _MESSAGES[self.key]
        for number, argument in enumerate(self.arguments, start=1):
            text = text.replace(f"%{number}", argument)
        document: dict[str, Any] = {
            "@odata.type": "#Message.v1_2_1.Message",
            "MessageId": f"{REGISTRY}.{self.key}",
            "Message": text,
            "MessageArgs": list(self.arguments),
            "MessageSeverity": severity,
            "Severity": severity,
            "Resolution": resolution,
        }
        if self.related:
            document["RelatedProperties"] = list(self.related)
        return document

    @property
    def document(self) -> dict[str, Any]:
        """The answer's body."""
        return error_document([self])


class ManyError(RedfishError):
    """More than one thing wrong in one body; all are told at once."""

    def __init__(self, errors: Sequence[RedfishError]) -> None:
        self.errors = tuple(errors)
        first = self.errors[0]
        super().__init__(first.key, *first.arguments, status=first.status, related=first.related)

    @property
    def document(self) -> dict[str, Any]:
        """The answer's body."""
        return error_document(self.errors)


def error_document(errors: Sequence[RedfishError]) -> dict[str, Any]:
    """Build the body of an error answer."""
    messages = [error.message for error in errors]
    if len(messages) == 1:
        code, text = messages[0]["MessageId"], messages[0]["Message"]
    else:
        code, text = f"{REGISTRY}.GeneralError", "See @Message.ExtendedInfo for what is wrong."
    return {"error": {"code": code, "message": text, "@Message.ExtendedInfo": messages}}


def raise_all(errors: Sequence[RedfishError]) -> None:
    """Raise what was found wrong, if anything."""
    if len(errors) == 1:
        raise errors[0]
    if errors:
        raise ManyError(errors)
