"""The survey: looking at what is there, and proposing the documents that would describe it.

tree, operations, controllers   one BMC: its Redfish tree, what it can do, what it says of its machine     pure
scrub                           a tree without secrets                                                     pure
devices                         what a host or a switch printed                                            pure
sheet                           a rack sheet                                                               pure
observed                        what was seen, as types                                                    pure
networks, fabric, machines      what follows from it; propose puts the documents together                  pure
compare                         the design of the proposal against what was seen: what is wrong            pure
look, run                       GETs and reading commands alone; and one survey, end to end
"""
