"""pulumi-resource-supernode: machines by Redfish and switch configuration over SSH, as Pulumi resources.

`schema` imports no pulumi; `server.main` is the plugin.
"""
