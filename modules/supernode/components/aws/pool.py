"""EC2 instances with EFA: a network behind the site's VPN, a placement group for each pool, an instance for each host.

A launch template belongs to one host: where interfaces are listed, EC2 takes an address, a subnet and security groups
from their list alone, so the fixed address of a host has to stand in it.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pulumi_aws as aws
from pulumi import ComponentResource, Input, InvokeOptions, ResourceOptions
from pulumi_aws import ec2, ssm

from supernode.components.cloud import CloudHost, CloudHostArgs, CloudNetworkArgs, CloudPoolArgs

ANYWHERE = "0.0.0.0/0"
ALL = "-1"  # every protocol
# What would make another instance of one that works; see docs/decisions.md.
_KEPT_IN_SERVICE = ["ami", "instanceType", "launchTemplate", "userData", "userDataBase64"]


def declare(network: CloudNetworkArgs, pools: Sequence[CloudPoolArgs]) -> None:
    """Declare the network and the pools, all by one provider of the network's region."""
    provider = aws.Provider("aws", region=network.region)
    made = AwsNetwork("cloud", network, ResourceOptions(providers={"aws": provider}))
    for pool in pools:
        AwsPool(pool, made, ResourceOptions(providers={"aws": provider}))


def _tags(environment: str, name: str, **more: str) -> dict[str, str]:
    return {"Name": name, "supernode:environment": environment} | {f"supernode:{k}": v for k, v in more.items()}


class AwsNetwork(ComponentResource):
    """A VPC of its own with one subnet, routes to the site, and the security group of all its hosts.

    There is no internet gateway: packages, time and names come from the site, and nothing reaches the hosts but by it.
    """

    subnet: Input[str]
    group: Input[str]

    def __init__(self, name: str, args: CloudNetworkArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("supernode:cloud:CloudNetwork", name, None, opts)
        self.args = args
        self.own = ResourceOptions(parent=self)
        vpc = ec2.Vpc(
            "vpc",
            cidr_block=args.cidr,
            enable_dns_support=True,
            enable_dns_hostnames=True,
            tags=self.tags("vpc"),
            opts=self.own,
        )
        subnet = ec2.Subnet(
            "subnet",
            vpc_id=vpc.id,
            cidr_block=args.subnet,
            availability_zone=args.zone,
            map_public_ip_on_launch=False,
            tags=self.tags("subnet"),
            opts=self.own,
        )
        self._routes(vpc, subnet)
        self.subnet, self.group = subnet.id, self._group(vpc).id
        self.register_outputs({"vpc": vpc.id, "subnet": subnet.id, "securityGroup": self.group})

    def tags(self, what: str) -> dict[str, str]:
        """Return the tags of something that the whole network shares."""
        return _tags(self.args.name, f"{self.args.name}-{what}")

    def _routes(self, vpc: ec2.Vpc, subnet: ec2.Subnet) -> None:
        attached = ec2.VpnGatewayAttachment("site", vpc_id=vpc.id, vpn_gateway_id=self.args.gateway, opts=self.own)
        table = ec2.RouteTable("routes", vpc_id=vpc.id, tags=self.tags("routes"), opts=self.own)
        ec2.RouteTableAssociation("routes", route_table_id=table.id, subnet_id=subnet.id, opts=self.own)
        for network in self.args.routes:
            ec2.Route(
                f"site-{network}",
                route_table_id=table.id,
                destination_cidr_block=network,
                gateway_id=attached.vpn_gateway_id,
                opts=self.own,
            )

    def _group(self, vpc: ec2.Vpc) -> ec2.SecurityGroup:
        """Let hosts do all among themselves, both ways, as EFA asks; from outside let in what is named alone."""
        said = "EFA and all else among the hosts"
        doors = [
            ec2.SecurityGroupIngressArgs(
                protocol="tcp",
                from_port=door.port,
                to_port=door.port,
                cidr_blocks=[door.network],
                description=door.what,
            )
            for door in self.args.let_in
        ]
        site = ec2.SecurityGroupEgressArgs(
            protocol=ALL, from_port=0, to_port=0, cidr_blocks=[ANYWHERE], description="What is routed: the site"
        )
        into = ec2.SecurityGroupIngressArgs(protocol=ALL, from_port=0, to_port=0, self=True, description=said)
        out = ec2.SecurityGroupEgressArgs(protocol=ALL, from_port=0, to_port=0, self=True, description=said)
        return ec2.SecurityGroup(
            "hosts",
            description=f"Hosts of {self.args.name}",
            vpc_id=vpc.id,
            ingress=[into, *doors],
            egress=[out, site],
            tags=self.tags("hosts"),
            opts=self.own,
        )


@dataclass(frozen=True)
class _Shared:
    """What all instances of a pool have in common."""

    args: CloudPoolArgs
    network: AwsNetwork
    image: Input[str]
    group: Input[str]


class AwsPool(ComponentResource):
    """The instances of one pool, close to each other: a cluster placement group."""

    def __init__(self, args: CloudPoolArgs, network: AwsNetwork, opts: ResourceOptions | None = None) -> None:
        super().__init__("supernode:cloud:CloudPool", args.name, None, opts)
        own = ResourceOptions(parent=self)
        name = f"{args.environment}-{args.name}"
        group = ec2.PlacementGroup(
            args.name, name=name, strategy="cluster", tags=_tags(args.environment, name), opts=own
        )
        shared = _Shared(args, network, self._image(args.image), group.name)
        for host in args.hosts:
            _instance(shared, host, own)
        self.register_outputs({"hosts": len(args.hosts)})

    def _image(self, image: Mapping[str, str]) -> Input[str]:
        if "ami" in image:
            return image["ami"]
        return ssm.get_parameter_output(name=image["ssm"], opts=InvokeOptions(parent=self)).value


def _instance(shared: _Shared, host: CloudHostArgs, opts: ResourceOptions) -> None:
    told = CloudHost(host, opts)
    template = _template(shared, host, ResourceOptions(parent=told))
    instance = ec2.Instance(
        host.name,
        launch_template=ec2.InstanceLaunchTemplateArgs(
            id=template.id, version=template.latest_version.apply(lambda version: str(int(version)))
        ),
        root_block_device=ec2.InstanceRootBlockDeviceArgs(
            volume_size=shared.args.root_gb, volume_type="gp3", encrypted=True, delete_on_termination=True
        ),
        tags=_tags(shared.args.environment, host.name, slot=host.slot, pool=shared.args.name),
        opts=ResourceOptions(
            parent=told,
            delete_before_replace=True,  # two cannot have one address
            ignore_changes=_KEPT_IN_SERVICE if host.in_service else [],
        ),
    )
    told.tell(instance.id, instance.private_ip, instance.instance_state)


def _template(shared: _Shared, host: CloudHostArgs, opts: ResourceOptions) -> ec2.LaunchTemplate:
    args = shared.args
    tags = _tags(args.environment, host.name, slot=host.slot, pool=args.name)
    return ec2.LaunchTemplate(
        host.name,
        name=f"{args.environment}-{host.name}",
        update_default_version=True,
        image_id=shared.image,
        instance_type=args.instance_type,
        user_data=base64.b64encode(host.user_data.encode()).decode(),
        network_interfaces=_interfaces(shared, host),
        placement=ec2.LaunchTemplatePlacementArgs(
            group_name=shared.group, availability_zone=shared.network.args.zone, tenancy="default"
        ),
        metadata_options=ec2.LaunchTemplateMetadataOptionsArgs(
            http_endpoint="enabled", http_tokens="required", http_put_response_hop_limit=1
        ),
        instance_market_options=_market(args.capacity),
        capacity_reservation_specification=_reservation(args.capacity),
        instance_initiated_shutdown_behavior="stop",
        tag_specifications=[
            ec2.LaunchTemplateTagSpecificationArgs(resource_type=kind, tags=tags)
            for kind in ("volume", "network-interface")
        ],
        tags=tags,
        opts=opts,
    )


def _interfaces(shared: _Shared, host: CloudHostArgs) -> list[ec2.LaunchTemplateNetworkInterfaceArgs]:
    """Return an interface for each network card; the first one has the host's address, the others none."""
    return [
        ec2.LaunchTemplateNetworkInterfaceArgs(
            network_card_index=card.card,
            device_index=card.device,
            interface_type=card.type,
            subnet_id=shared.network.subnet,
            security_groups=[shared.network.group],
            private_ip_address=host.address if card.card == 0 else None,
            delete_on_termination="true",
        )
        for card in shared.args.cards
    ]


def _market(capacity: Mapping[str, str]) -> ec2.LaunchTemplateInstanceMarketOptionsArgs | None:
    return ec2.LaunchTemplateInstanceMarketOptionsArgs(market_type="capacity-block") if "block" in capacity else None


def _reservation(capacity: Mapping[str, str]) -> ec2.LaunchTemplateCapacityReservationSpecificationArgs | None:
    reservation = capacity.get("block") or capacity.get("reservation")
    if reservation is None:
        return None
    target = ec2.LaunchTemplateCapacityReservationSpecificationCapacityReservationTargetArgs(
        capacity_reservation_id=reservation
    )
    return ec2.LaunchTemplateCapacityReservationSpecificationArgs(capacity_reservation_target=target)
