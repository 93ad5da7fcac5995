"""The lab's management controllers: Redfish over HTTPS, one process for many, each on its own address.

    messages      errors in Redfish's form            access        accounts, roles, sessions
    state         what survives a restart             settings      BIOS attributes, boot override, firmware
    media         virtual media and trusted CAs       faults, kinds what can be wrong with a BMC
    answers       what is told of a change            stale, clock  what it still shows, and when
    routes        path -> handler                     resources/    the resources, one file for each service
    controller    one BMC: its parts and POST         front         HTTP in, Redfish out
    fleet         all BMCs of a lab: listen, fault    certificates  the site's CA and each BMC's certificate

Where an identity stands: system serial and UUID in Systems/1; chassis serial in Chassis/1; board serial in
Chassis/1/Assembly (PhysicalContext SystemBoard); the BMC's MAC in Managers/1/EthernetInterfaces/eth0;
the host's MACs in Systems/1/EthernetInterfaces/{management,rail0…}.
"""
