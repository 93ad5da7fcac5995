#!/bin/sh
# Rendered from the design.
# A service with settings of ours is first started by its role, when all that it reads is there: its package would
# start it sooner, see it fail and wait for it. A restart after an upgrade is the package's, as ever.
[ "$2" = start ] || exit 0
unit=${1%.service}
for settings in "/etc/systemd/system/$unit.service.d/"*supernode.conf; do
    [ -e "$settings" ] && exit 101
done
exit 0
