# Written by supernode from the design: `supernode tune` explains each line.
# jobs find each other over the management network; the address is the rank table's server_id
export HCCL_IF_IP=10.10.0.11
# DSCP 33 in the upper six bits: the class that the fabric treats as lossless
export HCCL_RDMA_TC=132
