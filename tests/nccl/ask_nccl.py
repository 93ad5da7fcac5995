"""A program: what the real libnccl makes of a topology file or of conf files, without a GPU and without libcuda.

    python ask_nccl.py LIBRARY topology FILE     read, build, search the rings of one of two nodes
    python ask_nccl.py LIBRARY conf              the NCCL_ variables after it read its conf files

It calls functions that the library does not export, found in its symbol table, so it knows exactly one version. Exit
status 2: another version, or a symbol is missing. It runs in a process of its own: a parser that fails may leave
anything behind. The answer is one line of JSON.
"""

import ctypes
import json
import os
import struct
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from pathlib import Path

VERSION = 23203
# Sizes and places in this version's structures, from its own debugging information.
XML_HEAD, XML_NODE, XML_NODES = 8, 14104, 1024
SYSTEM_INTER = 60626024
GRAPH = 164920
GRAPH_INPUT = struct.Struct("<6i")  # id, pattern, crossNic, collNet, minChannels, maxChannels
GRAPH_OUTPUT = struct.Struct("<6i i f f f i i")
RING, MAX_CHANNELS = 4, 64
PATHS = ("LOC", "NVL", "NVB", "C2C", "PIX", "PXB", "P2C", "PXN", "PHB", "SYS", "NET", "DIS")
FUNCTIONS = {
    "read": "_Z22ncclTopoGetXmlFromFilePKcP7ncclXmli",
    "build": "_Z24ncclTopoGetSystemFromXmlP7ncclXmlPP14ncclTopoSystemm",
    "paths": "_Z20ncclTopoComputePathsP14ncclTopoSystemP8ncclComm",
    "prepare": "_Z18ncclTopoSearchInitP14ncclTopoSystem",
    "search": "_Z15ncclTopoComputeP14ncclTopoSystemP13ncclTopoGraph",
    "environment": "_Z7initEnvv",
}
HOST_HASH = 0x1


def refuse(why):
    print(why, file=sys.stderr)
    raise SystemExit(2)


def symbols(path, wanted):
    """Return the values of some symbols of a 64-bit ELF file."""
    with Path(path).open("rb") as stream:
        head = stream.read(64)
        table_at, entry, count = *struct.unpack_from("<Q", head, 40), *struct.unpack_from("<HH", head, 58)
        stream.seek(table_at)
        sections = [struct.unpack("<IIQQQQIIQQ", stream.read(entry)[:64]) for _ in range(count)]
        table = next((s for s in sections if s[1] == 2), None)  # SHT_SYMTAB
        if table is None:
            refuse("the library is stripped")
        stream.seek(sections[table[6]][4])
        names = stream.read(sections[table[6]][5])
        stream.seek(table[4])
        rows = struct.iter_unpack("<IBBHQQ", stream.read(table[5]))
        places = {names.index(b"\0" + name.encode() + b"\0") + 1: name for name in wanted}
        return {places[row[0]]: row[4] for row in rows if row[0] in places}


class Nccl:
    """The library with its inner functions."""

    def __init__(self, path):
        self.library = ctypes.CDLL(path)
        version = ctypes.c_int()
        self.library.ncclGetVersion(ctypes.byref(version))
        if version.value != VERSION:
            refuse(f"version {version.value}, and this program knows {VERSION}")
        try:
            found = symbols(path, ["pncclGetVersion", *FUNCTIONS.values()])
        except ValueError as missing:
            refuse(f"a symbol is missing: {missing}")
        base = ctypes.cast(self.library.pncclGetVersion, ctypes.c_void_p).value - found["pncclGetVersion"]
        self.at = {name: base + found[symbol] for name, symbol in FUNCTIONS.items()}

    def call(self, name, *arguments):
        kinds = [ctypes.c_int if isinstance(a, int) else type(a) for a in arguments]
        return ctypes.CFUNCTYPE(ctypes.c_int, *kinds)(self.at[name])(*arguments)


def annotated(path):
    """Write a copy with what NCCL itself adds at run time, and return its path."""
    tree = ElementTree.parse(path)  # noqa: S314 - our own file
    for element in tree.iter():
        if element.tag == "cpu":
            element.set("host_hash", hex(HOST_HASH))
        if element.tag in ("gpu", "net"):
            element.set("keep", "1")
            element.set("gdr", element.get("gdr", "1"))
        if element.tag == "gpu":
            element.set("rank", element.get("dev", "0"))
        if element.tag == "net":
            element.set("rail", "-1")
            element.set("plane", "-1")
    handle, name = tempfile.mkstemp(suffix=".xml")
    os.close(handle)
    tree.write(name, xml_declaration=False)
    return name


def topology(nccl, path):
    xml = ctypes.create_string_buffer(XML_HEAD + XML_NODE * XML_NODES)
    struct.pack_into("<ii", xml, 0, 0, XML_NODES)
    answer = {"read": nccl.call("read", ctypes.c_char_p(os.fsencode(path)), xml, 1)}
    if answer["read"]:
        return answer
    # The file as it is was read; what follows works on a copy that is as complete as in a running job.
    struct.pack_into("<ii", xml, 0, 0, XML_NODES)
    copy = annotated(path)
    answer["copy"] = nccl.call("read", ctypes.c_char_p(os.fsencode(copy)), xml, 1)
    Path(copy).unlink()
    system = ctypes.c_void_p()
    build = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint64)(nccl.at["build"])
    answer["build"] = build(ctypes.addressof(xml), ctypes.addressof(system), HOST_HASH)
    if answer["copy"] or answer["build"]:
        return answer
    answer["paths"] = nccl.call("paths", system, ctypes.c_void_p())
    answer["prepare"] = nccl.call("prepare", system)
    ctypes.c_int.from_address(system.value + SYSTEM_INTER).value = 1
    return answer | rings(nccl, system)


def rings(nccl, system):
    graph = ctypes.create_string_buffer(GRAPH)
    GRAPH_INPUT.pack_into(graph, 0, 0, RING, 2, 0, 1, MAX_CHANNELS)
    rc = nccl.call("search", system, graph)
    *_, channels, intra, inter, _, inside, outside = GRAPH_OUTPUT.unpack_from(graph)
    return {
        "search": rc,
        "channels": channels,
        "intra_gbyte_s": round(intra, 3),
        "inter_gbyte_s": round(inter, 3),
        "intra_path": PATHS[inside],
        "inter_path": PATHS[outside],
    }


def conf(nccl):
    ctypes.CFUNCTYPE(None)(nccl.at["environment"])()
    # Written past Python: only the C library's own list knows what NCCL put there.
    words = ctypes.POINTER(ctypes.c_char_p).in_dll(ctypes.CDLL(None), "environ")
    rows = iter(lambda: next(counter), None)
    counter = iter(words[i] for i in range(10000))
    pairs = (row.decode().partition("=") for row in rows)
    return {name: value for name, _, value in pairs if name.startswith("NCCL_")}


def main():
    os.environ["NCCL_IGNORE_DISABLED_P2P"] = "2"  # else it asks NVML
    library, verb, *rest = sys.argv[1:]
    nccl = Nccl(library)
    print(json.dumps(topology(nccl, *rest) if verb == "topology" else conf(nccl)))


if __name__ == "__main__":
    main()
