"""The relay between adapters and the simulated subnet: a request ends, answered or not, and an answer comes once."""

import itertools
import socket
import struct

import pytest

from supernode.lab import transactions
from supernode.lab.transactions import CONNECT, CONTROL, ERROR, MAD, PACKET, STATUS

HOST = "127.0.0.1"
GET, TRAP_REPRESS, GET_RESPONSE = 0x01, 0x07, 0x81
PORTS = itertools.count(21170, 40)


def packet(method=GET, transaction=7, kind=0x81, status=0):
    made = bytearray(PACKET)
    made[MAD : MAD + 4] = bytes((1, kind, 1, method))
    made[MAD + 8 : MAD + 16] = struct.pack("!Q", transaction)
    made[STATUS : STATUS + 4] = struct.pack("!I", status)
    return bytes(made)


def listener(port=0):
    made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    made.bind((HOST, port))
    made.settimeout(3)
    return made


class Simulator:
    """ibsim's side, as include/ibsim.h has it: gives place 0, and answers what the test says."""

    def __init__(self, port):
        self.control, self.place = listener(port), listener(port + 1)

    def control_once(self, kind=CONNECT):
        asked, sender = self.control.recvfrom(512)
        magic, client, _, length, data = CONTROL.unpack(asked)
        self.client = (sender[0], struct.unpack_from("=I", data)[0])
        self.control.sendto(CONTROL.pack(magic, client, kind, length, struct.pack("=I", 0) + data[4:]), sender)

    def hear(self):
        return self.place.recv(512)

    def say(self, told):
        self.place.sendto(told, self.client)


class Client:
    """umad2sim's side: connects by the control channel, and speaks at the port of its place."""

    def __init__(self, port):
        self.port, self.control, self.data = port, listener(), listener()

    def connect(self, simulator, kind=CONNECT):
        asked = struct.pack("=I", self.data.getsockname()[1])
        self.control.sendto(CONTROL.pack(0xDEADBEEF, 0, CONNECT, 44, asked), (HOST, self.port))
        simulator.control_once(kind)
        answered = CONTROL.unpack(self.control.recv(512))
        self.data.connect((HOST, self.port + 1))
        return answered


@pytest.fixture
def ends():
    port = next(PORTS)
    simulator, client = Simulator(port + 20), Client(port)
    relay = transactions.Relay(HOST, port, port + 20)
    relay.start()
    yield simulator, client
    relay.stop()
    for end in (simulator.control, simulator.place, client.control, client.data):
        end.close()


def test_a_request_and_its_answer_pass_unchanged(ends):
    simulator, client = ends
    assert client.connect(simulator)[2] == CONNECT
    client.data.send(packet())
    assert simulator.hear() == packet()
    simulator.say(packet(GET_RESPONSE))
    assert client.data.recv(512) == packet(GET_RESPONSE)


def test_a_request_that_nobody_answers_is_sent_again_and_then_times_out(ends):
    simulator, client = ends
    client.connect(simulator)
    client.data.send(packet(transaction=9))
    assert [simulator.hear() for _ in range(transactions.SENDS)] == [packet(transaction=9)] * transactions.SENDS
    assert client.data.recv(512) == packet(transaction=9, status=110)


def test_an_answer_comes_once(ends):
    simulator, client = ends
    client.connect(simulator)
    client.data.send(packet())
    simulator.hear()
    noted = packet(GET_RESPONSE, transaction=(3 << 48) | 7)  # the simulator writes the client into the transaction
    simulator.say(noted)
    simulator.say(noted)
    simulator.say(packet(transaction=11))  # a request of another manager
    assert [client.data.recv(512), client.data.recv(512)] == [noted, packet(transaction=11)]


def test_what_asks_for_no_answer_is_not_waited_for(ends):
    simulator, client = ends
    client.connect(simulator)
    client.data.send(packet(TRAP_REPRESS))
    client.data.send(packet(kind=0x03, transaction=5))
    assert (simulator.hear(), simulator.hear()) == (packet(TRAP_REPRESS), packet(kind=0x03, transaction=5))
    client.data.settimeout(transactions.WAIT_S * (transactions.SENDS + 1))
    with pytest.raises(TimeoutError):
        client.data.recv(512)


def test_a_client_that_gets_no_place_is_told_so_and_the_next_gets_one(ends):
    simulator, client = ends
    assert client.connect(simulator, ERROR)[2] == ERROR
    second = Client(client.port)
    second.connect(simulator)
    second.data.send(packet())
    assert simulator.hear() == packet()
    second.control.close()
    second.data.close()
