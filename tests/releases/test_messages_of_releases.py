"""Messages pass between this release and the one before in both directions: as records of topics, and in the log.

This needs no history and no broker: what a record of the release before looks like was kept, and what it makes of ours
is told by its descriptors, `proto/baseline.binpb`.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
import zstandard
from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory
from google.protobuf.descriptor import FieldDescriptor
from nephila.kernel.bus.kafka.wire import CODECS, HEADERS, TooNew, frame_of, message_of, seal, unseal
from nephila.kernel.messages import FrontierCommit, FrontierSnapshot
from nephila.kernel.topics import TOPICS
from nephila.scheduler.durability.commit_log import CommitLog

from tests.releases.freeze import killed_crawl
from tests.releases.past import ROOT, releases
from tests.releases.samples import fill

READ_ONLY_YET: frozenset[str] = frozenset()
"""Values of enums, as "FetchResult 9", that this release reads and does not write: the one before would refuse them.
Who adds one names it here, and writes it in the release after."""


def load_baseline() -> dict[str, Any]:
    """Messages of the release before, by name."""
    pool = descriptor_pool.DescriptorPool()
    files = descriptor_pb2.FileDescriptorSet.FromString((ROOT / "proto" / "baseline.binpb").read_bytes()).file
    for file in files:
        pool.Add(file)
    names = [f"{file.package}.{message.name}" for file in files for message in file.message_type]
    return {
        name.rpartition(".")[2]: message_factory.GetMessageClass(pool.FindMessageTypeByName(name)) for name in names
    }


BEFORE = load_baseline()
STRUCTS = {struct.__name__: struct for struct in CODECS}
RECORDS = json.loads((releases()[-1].data / "records.json").read_text())


@pytest.mark.parametrize("name", sorted(RECORDS))
def test_a_record_of_the_release_before_is_read_whole(name):
    """Decoded and written again by this program it says the same, every field of it."""
    (frame,) = unseal(bytes.fromhex(RECORDS[name]), [("v", b"1")])
    message = message_of(STRUCTS[name], frame)
    again = BEFORE[name].FromString(CODECS[STRUCTS[name]].encode(message))
    theirs = as_json(BEFORE[name].FromString(plain(frame)))
    assert as_json(again) == theirs
    assert len(theirs) == len(BEFORE[name].DESCRIPTOR.fields)


@pytest.mark.parametrize("name", sorted(BEFORE))
def test_a_record_of_this_release_is_read_by_the_one_before(name):
    """What it knows has our values; what is new it passes over."""
    codec = CODECS[STRUCTS[name]]
    ours = fill(codec.proto())
    data = codec.encode(codec.decode(without_new_values(ours).SerializeToString()))
    theirs = BEFORE[name].FromString(data)
    assert covered(as_json(theirs), as_json(codec.proto.FromString(data)))
    assert set(as_json(theirs)) >= {f.json_name for f in BEFORE[name].DESCRIPTOR.fields if not f.message_type}


def test_no_message_of_the_release_before_is_missing():
    """Each has its struct, and the samples that were kept are of all of them."""
    assert set(BEFORE) <= set(STRUCTS)
    assert set(BEFORE) == set(RECORDS)
    assert {topic.message.__name__ for topic in TOPICS} <= set(STRUCTS)


def test_values_that_the_release_before_does_not_know_are_not_written_yet():
    """An older program refuses what it cannot tell, and its partition stands still."""
    new = set()
    for name, proto in BEFORE.items():
        for field in proto.DESCRIPTOR.fields:
            if field.enum_type is not None:
                now = CODECS[STRUCTS[name]].proto.DESCRIPTOR.fields_by_name[field.name].enum_type.values_by_number
                then = field.enum_type.values_by_number
                new |= {f"{field.enum_type.name} {one}" for one in now if one not in then}
    assert new == READ_ONLY_YET, "write them in the next release; READ_ONLY_YET says why"


def test_fields_of_a_release_to_come_are_passed_over():
    """As protobuf, and as the log has them."""
    commit = FrontierCommit(1, 2, 3)
    data = CODECS[FrontierCommit].encode(commit) + b"\xfa\x7f\x03new"  # field 2047, bytes
    assert message_of(FrontierCommit, unseal(seal([frame_of_bytes(data)]), HEADERS)[0]) == commit
    array = msgspec.msgpack.decode(msgspec.msgpack.encode(commit))
    assert msgspec.msgpack.decode(msgspec.msgpack.encode([*array, "new", {"more": 1}]), type=FrontierCommit) == commit


def test_a_format_of_a_release_to_come_is_not_guessed_at():
    """The number beside a record, and a value that is not known yet."""
    with pytest.raises(TooNew, match="format 2"):
        unseal(bytes.fromhex(RECORDS["Seed"]), [("v", b"2")])
    proto = CODECS[STRUCTS["FetchOutcome"]].proto(result=99)
    with pytest.raises(TooNew, match="FetchResult 99"):
        message_of(STRUCTS["FetchOutcome"], frame_of_bytes(proto.SerializeToString()))


def test_the_release_before_reads_our_log(tmp_path):
    """A log and a snapshot of a killed crawl, place for place as its messages are numbered."""
    killed_crawl(tmp_path, None)
    count = 0
    for entry in CommitLog(tmp_path / "o" / "frontier", read_only=True).recover():
        assert isinstance(entry, FrontierCommit | FrontierSnapshot)
        check_array(BEFORE[type(entry).__name__].DESCRIPTOR, msgspec.msgpack.decode(msgspec.msgpack.encode(entry)))
        count += 1
    assert count > 1


def test_a_log_that_it_could_not_read_is_noticed():
    """The check above can fail: another order, another type, an unknown value."""
    log = BEFORE["EndedUrl"].DESCRIPTOR
    check_array(log, [b"k" * 16, "job", "host", 1, 1, "a field of later"])
    for wrong in (["job", b"k" * 16], [b"k" * 16, "job", "host", "1"], [b"k" * 16, "job", "host", 1, 99]):
        with pytest.raises(AssertionError):
            check_array(log, wrong)


def plain(frame) -> bytes:
    """The message in a frame, as its program encoded it."""
    return zstandard.decompress(frame.message) if frame.encoding else frame.message


def frame_of_bytes(data):
    """A frame around bytes."""
    frame = frame_of(STRUCTS["Seed"], STRUCTS["Seed"]())
    frame.message = data
    return frame


def as_json(message) -> dict[str, Any]:
    """What is known of a message, without what is not."""
    found: dict[str, Any] = json_format.MessageToDict(message, use_integers_for_enums=True)
    return found


def covered(less, more) -> bool:
    """Whether everything in the first stands in the second."""
    if isinstance(less, dict):
        return all(name in more and covered(value, more[name]) for name, value in less.items())
    if isinstance(less, list):
        return len(less) == len(more) and all(map(covered, less, more))
    return bool(less == more)


def without_new_values(message):
    """Enums at their highest value that is written already."""
    for field, value in message.ListFields():
        if field.message_type is not None:
            for one in value if field.is_repeated else [value]:
                without_new_values(one)
        elif field.enum_type is not None:
            written = [
                n for n in field.enum_type.values_by_number if f"{field.enum_type.name} {n}" not in READ_ONLY_YET
            ]
            setattr(message, field.name, max(written))
    return message


KINDS = {
    FieldDescriptor.CPPTYPE_BOOL: bool,
    FieldDescriptor.CPPTYPE_DOUBLE: int | float,
    FieldDescriptor.CPPTYPE_FLOAT: int | float,
}


def check_array(descriptor, array) -> None:
    """A message as the log has it, read by a descriptor: field n at place n - 1, more behind it is passed over."""
    assert isinstance(array, list)
    for field, value in zip(sorted(descriptor.fields, key=lambda f: f.number), array, strict=False):
        if field.is_repeated:
            assert isinstance(value, list), field.full_name
        for one in value if field.is_repeated else [value]:
            check_value(field, one)


def check_value(field, value) -> None:
    """One value of a field."""
    if field.message_type is not None:
        if value is not None:
            check_array(field.message_type, value)
    elif field.enum_type is not None:
        assert value in field.enum_type.values_by_number, field.full_name
    elif field.cpp_type == field.CPPTYPE_STRING:
        assert isinstance(value, str if field.type == field.TYPE_STRING else bytes), field.full_name
    else:
        assert isinstance(value, KINDS.get(field.cpp_type, int)), field.full_name
