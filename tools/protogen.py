"""Generate `nephila.kernel.messages` from `proto/`: one slotted msgspec struct per message, one IntEnum per enum.

Beside them `descriptors.binpb`, from which the Kafka bus makes their protobuf form. The structs are plain objects in
one program (nothing is serialised there) and encode as MessagePack arrays, ordered by field number, where bytes stay
on one machine (frontier log). docs/adr/0003 says why. `--check` writes nothing and fails when the generated files
differ from what the proto files say.
"""

from __future__ import annotations

import argparse
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterable
from graphlib import TopologicalSorter

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    FileDescriptorSet,
)

ROOT = pathlib.Path(__file__).resolve().parent.parent
OUT = ROOT / "services" / "nephila" / "kernel" / "messages"
F = FieldDescriptorProto
SCALARS = {
    F.TYPE_STRING: ("str", '""'),
    F.TYPE_BYTES: ("bytes", 'b""'),
    F.TYPE_BOOL: ("bool", "False"),
    F.TYPE_DOUBLE: ("float", "0.0"),
    F.TYPE_FLOAT: ("float", "0.0"),
    F.TYPE_INT32: ("int", "0"),
    F.TYPE_UINT32: ("int", "0"),
    F.TYPE_UINT64: ("int", "0"),
}


def comments(file: FileDescriptorProto) -> dict[tuple[int, ...], str]:
    """Leading comments by descriptor path."""
    return {tuple(loc.path): loc.leading_comments.strip() for loc in file.source_code_info.location}


def docstring(text: str, indent: str) -> list[str]:
    """The comment as a docstring, wrapped at the line length of the house."""
    flat = " ".join(text.split())
    lines = textwrap.wrap(flat, 110 - len(indent))
    if len(lines) <= 1:
        return [f'{indent}"""{flat}"""']
    return [f'{indent}"""{lines[0]}', *(indent + line for line in lines[1:]), f'{indent}"""']


def enum_lines(enum: EnumDescriptorProto, doc: str) -> list[str]:
    """An IntEnum whose member names lose the enum's prefix; zero is UNSPECIFIED."""
    prefix = re.sub(r"(?<!^)(?=[A-Z])", "_", enum.name).upper() + "_"
    lines = [f"class {enum.name}(IntEnum):", *docstring(doc, "    "), ""]
    lines += [f"    {value.name.removeprefix(prefix)} = {value.number}" for value in enum.value]
    return [*lines, "", ""]


def field_type(field: FieldDescriptorProto) -> tuple[str, str]:
    """Annotation and default of a field."""
    name = field.type_name.rsplit(".", 1)[-1]
    if field.type == F.TYPE_ENUM:
        kind, default = name, f"{name}.UNSPECIFIED"
    elif field.type == F.TYPE_MESSAGE:
        kind, default = f"{name} | None", "None"
    else:
        kind, default = SCALARS[field.type]
    if field.label == F.LABEL_REPEATED:
        return f"list[{kind.removesuffix(' | None')}]", "msgspec.field(default_factory=list)"
    return kind, default


def struct_lines(message: DescriptorProto, path: tuple[int, ...], notes: dict[tuple[int, ...], str]) -> list[str]:
    """A struct; field numbers must be dense, because a field's place in the array is its number."""
    numbers = [field.number for field in message.field]
    if numbers != list(range(1, len(numbers) + 1)):
        raise SystemExit(f"proto message {message.name}: field numbers must be 1..n in order, got {numbers}")
    lines = [f"class {message.name}(msgspec.Struct, array_like=True, gc=False):"]
    lines += [*docstring(notes.get(path, ""), "    "), ""]
    for index, field in enumerate(message.field):
        note = notes.get((*path, 2, index))
        if note:
            lines += textwrap.wrap(" ".join(note.split()), 110, initial_indent="    # ", subsequent_indent="    # ")
        kind, default = field_type(field)
        if field.type_name.rsplit(".", 1)[-1] == message.name:
            kind = f'"{kind}"'
        lines.append(f"    {field.name}: {kind} = {default}")
    return [*lines, "", ""]


def in_order(file: FileDescriptorProto) -> list[int]:
    """The messages of a file, each after those that its fields hold: annotations are values, since texts of them would
    be compiled at each start."""
    places = {message.name: place for place, message in enumerate(file.message_type)}
    held: dict[int, list[int]] = {}
    for place, message in enumerate(file.message_type):
        named = {field.type_name.rsplit(".", 1)[-1] for field in message.field} - {message.name}
        held[place] = sorted(places[name] for name in named & places.keys())
    return list(TopologicalSorter(held).static_order())


def module(file: FileDescriptorProto) -> str:
    """The Python module of one proto file."""
    notes = comments(file)
    head = [f'"""Generated from proto/{file.name} by tools/protogen.py; do not edit."""', ""]
    if file.enum_type:
        head += ["from enum import IntEnum", ""]
    head += ["import msgspec", ""]
    for dependency in file.dependency:
        name = pathlib.PurePath(dependency).stem
        head.append(f"from nephila.kernel.messages.{name} import *  # noqa: F403")
    body: list[str] = ["", ""]
    for index, enum in enumerate(file.enum_type):
        body += enum_lines(enum, notes.get((5, index), ""))
    for index in in_order(file):
        body += struct_lines(file.message_type[index], (4, index), notes)
    return "\n".join(head + body).rstrip() + "\n"


def names(file: FileDescriptorProto) -> list[str]:
    """Names a module exports."""
    return [e.name for e in file.enum_type] + [m.name for m in file.message_type]


def explicit_imports(file: FileDescriptorProto, by_file: dict[str, FileDescriptorProto], text: str) -> str:
    """Star imports replaced by the names the module uses."""
    for dependency in file.dependency:
        stem = pathlib.PurePath(dependency).stem
        used = sorted(n for n in names(by_file[dependency]) if re.search(rf"^    \w+: [^#=]*\b{n}\b", text, re.M))
        text = text.replace(
            f"from nephila.kernel.messages.{stem} import *  # noqa: F403",
            f"from nephila.kernel.messages.{stem} import {', '.join(used)}",
        )
    return text


def generate() -> dict[str, bytes]:
    """File name -> content of everything that is generated."""
    buf = shutil.which("buf", path=str(pathlib.Path(sys.executable).parent)) or shutil.which("buf")
    if buf is None:
        raise SystemExit("protogen: buf is missing; run `make install-dev`")
    with tempfile.NamedTemporaryFile(suffix=".binpb") as image:
        subprocess.run([buf, "build", "-o", image.name], cwd=ROOT, check=True)
        files = FileDescriptorSet.FromString(pathlib.Path(image.name).read_bytes()).file
    by_file = {file.name: file for file in files}
    out: dict[str, str] = {}
    index = ['"""The messages of Nephila, generated from proto/ by tools/protogen.py; do not edit."""', ""]
    exported: list[str] = []
    for file in sorted(files, key=lambda f: f.name):
        stem = pathlib.PurePath(file.name).stem
        out[f"{stem}.py"] = explicit_imports(file, by_file, module(file))
        index.append(f"from nephila.kernel.messages.{stem} import {', '.join(sorted(names(file)))}")
        exported += names(file)
    index += ["", "__all__ = [", *(f'    "{name}",' for name in sorted(exported)), "]", ""]
    out["__init__.py"] = "\n".join(index)
    return {**{name: text.encode() for name, text in out.items()}, "descriptors.binpb": descriptors(files)}


def descriptors(files: Iterable[FileDescriptorProto]) -> bytes:
    """The bare descriptors, in an order in which each file's imports stand before it (as buf writes them)."""
    bare = FileDescriptorSet()
    for file in files:
        copy = bare.file.add()
        copy.CopyFrom(file)
        copy.ClearField("source_code_info")
        copy.DiscardUnknownFields()
    return bare.SerializeToString(deterministic=True)


def main() -> None:
    """Write the files, or with --check compare them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="fail when the generated files differ")
    check = parser.parse_args().check
    stale = []
    for name, content in generate().items():
        path = OUT / name
        if path.exists() and path.read_bytes() == content:
            continue
        stale.append(name)
        if not check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
    if check and stale:
        raise SystemExit(f"proto drift: {', '.join(stale)} differ from proto/; run `make proto`")


if __name__ == "__main__":
    main()
