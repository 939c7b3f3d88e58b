"""The protocol between two processes of one program: a stream of items, in the order of sending.

An item has a head (kind, number, partition, length) and a body: a message of a topic in MessagePack, the numbers of
acked messages, or a control message. `FrameWriter` collects items for one write; `Reader` turns bytes of any chunking
into items. Invariant: the order is kept, nothing is skipped. Both ends run the same version on one machine, so this
is no public format, and the byte order is the machine's.
"""

import struct
from array import array
from collections.abc import Callable
from typing import Any, Union

import msgspec

from nephila.kernel.messages import CrawlJob, Outcome, QuotaUse
from nephila.kernel.topics import TOPICS, Topic

HEAD = struct.Struct("=BQHI")
"""Kind (index into the topics, or ACKS or CONTROL), number, partition, length of the body in bytes."""
_NO_HEAD = bytes(HEAD.size)
Key = tuple[str, bytes]
"""Job and fingerprint of a URL."""
ACKS, CONTROL = 254, 255
NUMBERS = {topic: number for number, topic in enumerate(TOPICS)}


class _Control(msgspec.Struct, array_like=True, tag=True):
    """A control message between the two ends; not from service to service."""


class GroupRefused(_Control):
    """Group → main: it cannot start; one line with the reason."""

    text: str
    usage: bool = False
    """The settings are wrong."""


class Drain(_Control):
    """Main → group: take nothing more, finish within this time."""

    grace_s: float


class Drained(_Control):
    """Group → main: nothing is in flight, and all results were sent before this message."""


class Forget(_Control):
    """Between groups, over main: links of this job that were sent before may be wanted now."""

    job: str


class Ping(_Control):
    """Main → group: health check."""


class Pong(_Control):
    """Group → main: the event loop runs."""


class GroupSettings(_Control):
    """Main → group, first: the configuration of its services, each as MessagePack, and the partitions that it has."""

    scheduler: bytes
    downloader: bytes
    parser: bytes
    first: int
    """Number of its first partition."""
    after: int
    """Number after that of its last partition."""
    count: int
    """Partitions of all groups."""
    pages: bool = False
    """The main process reads `pages`: bodies are sent there too."""
    follows_pages: bool = True
    """Links that the parser finds in pages are wanted."""


class JobReport(_Control):
    """One job in the partitions of a group."""

    uid: str
    generation: int
    queued: int
    fetchable: int
    """Queued URLs, without those on hosts whose budget is spent."""
    leased: int
    """URLs that are requested and have no receipt."""
    ended: dict[Outcome, int]
    claimed: int
    """Pages of its budget that are in use."""
    requested: int
    """Pages of its budget that it could use now, in addition to those that it has been granted."""
    out_of_scope: int
    links_held: int
    links_lost: int
    quota: str
    """Which quota is used up, in words; empty: none."""
    window: str
    """Which window the job waits for, in words; empty: none."""
    redirect_anchors: list[str]
    """Anchors that redirects of seeds have led to in the life of the process, the first ones."""


class GroupReport(_Control):
    """Group → main: its state, when that has changed. It comes before the acks of the messages that have changed it."""

    idle: bool
    """Nothing is outstanding, and every input is committed."""
    in_flight: int
    outstanding: int
    requests: int
    wire_bytes: int
    next_fetch: float | None
    """When a queued URL may be fetched, on the machine's monotonic clock; None: no host waits for time alone."""
    errors: dict[str, int]
    causes: dict[str, int]
    first_fault: str
    refused_seeds: list[tuple[str, str]]
    """(URL, reason) of seeds since the report before."""
    hosts_waiting: int
    """Hosts with queued URLs that wait for time alone."""
    waiting_for_address: tuple[int, str]
    """Hosts that wait for their server address, and the address of most of them."""
    waiting_hosts: list[tuple[str, float, int]]
    """(host, seconds until its next fetch, queued URLs), only of a group that is idle."""
    jobs: list[JobReport]
    uses: list[QuotaUse]
    """What its partitions have spent of quotas."""


class QuotasElsewhere(_Control):
    """Main → group: what other groups have spent of quotas."""

    uses: list[QuotaUse]


class Recovered(_Control):
    """Group → main: its log is read; nothing is fetched before `Begin`."""

    commits: int
    urls: int
    leased: int
    jobs: list[CrawlJob]
    """The jobs of its log."""
    in_flight: list[Key]
    """URLs without a receipt that the process before had requested."""


class Begin(_Control):
    """Main → group: fetch, with so many pages of the budget of each job."""

    pages: dict[str, int]
    held: bool
    suspects: list[Key]
    """URLs that may have killed the processes before: each is fetched alone."""
    poison: list[Key]
    """URLs that end as a dead letter."""


class Probe(_Control):
    """Group → main: this suspect is the only request in flight from here on."""

    key: Key


class Probed(_Control):
    """Group → main: the suspect has ended; `tried`: its URL was really fetched."""

    key: Key
    tried: bool


class Hold(_Control):
    """Main → group: fetch nothing while a change comes in, or continue."""

    held: bool


class PagesGranted(_Control):
    """Main → group: the job may use so many further pages; `spent`: all groups have stored its whole budget."""

    job: str
    pages: int
    spent: bool


class RecallPages(_Control):
    """Main → group: another group needs pages of this job."""

    job: str


class PagesReturned(_Control):
    """Group → main: pages of its grant that it does not use; all that it uses is in its log."""

    job: str
    pages: int


class AddressWanted(_Control):
    """Group → main: a host waits for this address."""

    address: str


class AddressGranted(_Control):
    """Main → group: the group alone fetches from this address, from this instant of the monotonic clock on."""

    address: str
    not_before: float


class RecallAddress(_Control):
    """Main → group: another group waits for this address."""

    address: str


class AddressReleased(_Control):
    """Group → main: no fetch of the group is on this address, and its gap ends at this instant."""

    address: str
    free_at: float


class Ask(_Control):
    """Main → group: answer this question."""

    number: int
    kind: str
    """anchors (of a job), metrics, refetch (URLs of a job), durable, begin-after (fetch numbers of jobs), or control
    (`nephila_control.local.group_questions`)."""
    question: bytes


class Answer(_Control):
    """Group → main: the answer to the question with this number."""

    number: int
    answer: bytes
    error: str = ""
    """Why there is none."""


class Close(_Control):
    """Main → group: close the log and end."""


class Failed(_Control):
    """Group → main: the log can no longer be written; one line with the reason."""

    text: str


Control = Union[  # noqa: UP007
    GroupSettings,
    GroupRefused,
    GroupReport,
    Recovered,
    Begin,
    Probe,
    Probed,
    Hold,
    QuotasElsewhere,
    PagesGranted,
    RecallPages,
    PagesReturned,
    AddressWanted,
    AddressGranted,
    RecallAddress,
    AddressReleased,
    Ask,
    Answer,
    Close,
    Failed,
    Drain,
    Drained,
    Forget,
    Ping,
    Pong,
]


Item = tuple[int, int, int, memoryview]
"""Kind, number, partition and body of an item; the body is not decoded."""


class FrameWriter:
    """Collects items to be written."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._acks: list[int] = []
        self.ack = self._acks.append
        """Note that this message of the other end is acked; acks are written at the end of a frame."""
        self._encoder = msgspec.msgpack.Encoder(enc_hook=memoryview)

    def __len__(self) -> int:
        """Bytes collected."""
        return len(self._buffer) + 8 * len(self._acks)

    def message(self, topic: Topic, number: int, partition: int, message: Any) -> None:
        """Add a message. Text that UTF-8 cannot encode is replaced, so that the message is not lost."""
        start = len(self._buffer)
        try:
            self._put(NUMBERS[topic], number, partition, message)
        except UnicodeEncodeError:
            del self._buffer[start:]
            self._put(NUMBERS[topic], number, partition, _storable(message))

    def control(self, control: Control) -> None:
        """Add a control message."""
        self._put(CONTROL, 0, 0, control)

    def take(self) -> bytearray:
        """Return the collected bytes and start a new frame."""
        acks = self._acks
        if acks:
            self._buffer += HEAD.pack(ACKS, 0, 0, 8 * len(acks))
            self._buffer += array("Q", acks).tobytes()
            acks.clear()
        taken, self._buffer = self._buffer, bytearray()
        return taken

    def _put(self, kind: int, number: int, partition: int, body: Any) -> None:
        buffer = self._buffer
        start = len(buffer)
        buffer += _NO_HEAD
        self._encoder.encode_into(body, buffer, -1)
        HEAD.pack_into(buffer, start, kind, number, partition, len(buffer) - start - HEAD.size)


def _storable(message: Any) -> Any:
    """A copy whose texts can be encoded as UTF-8."""
    texts = {name: getattr(message, name) for name in message.__struct_fields__}
    changed = {name: text.encode("utf-8", "replace").decode() for name, text in texts.items() if isinstance(text, str)}
    return msgspec.structs.replace(message, **changed)


DECODE: tuple[Callable[[Any], Any], ...] = tuple(msgspec.msgpack.Decoder(topic.message).decode for topic in TOPICS)
"""Decoder of each kind. Raises `msgspec.DecodeError`, a ValueError."""
decode_control: Callable[[Any], Control] = msgspec.msgpack.Decoder(Control).decode


def decode_acks(body: memoryview) -> "array[int]":
    """The acked numbers of a body."""
    numbers = array("Q")
    numbers.frombytes(body)
    return numbers


class Reader:
    """Turns bytes into items."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, data: bytes) -> list[Item]:
        """The items completed by these bytes, in order."""
        rest, head, size = self._rest, HEAD.unpack_from, HEAD.size
        if rest:
            rest += data
            if len(rest) < size or len(rest) < size + head(rest)[3]:
                return []
            data, self._rest = bytes(rest), bytearray()
        at, end = 0, len(data)
        view = memoryview(data)
        items = []
        while end - at >= size:
            kind, number, partition, length = head(data, at)
            start, stop = at + size, at + size + length
            if stop > end:
                break
            items.append((kind, number, partition, view[start:stop]))
            at = stop
        self._rest += view[at:]
        return items
