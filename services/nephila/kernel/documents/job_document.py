"""The CrawlJob document: read from YAML or JSON, carried by the message `CrawlJob` as bytes, decoded by services.

The same document is a file for `nephila crawl` and `nephila jobs apply`, JSON of the control API, and a custom
resource. Invariants: each error of `from_node` is one line with file:line:column; the defaults are those of the command
line; equal jobs have equal bytes. The caller reads files of seeds.
"""

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import msgspec

from nephila.kernel.documents import document_files
from nephila.kernel.documents import job_schema as schema
from nephila.kernel.documents.field_types import API_VERSION
from nephila.kernel.documents.job_schema import JobSpec
from nephila.kernel.documents.struct_reader import Section, read
from nephila.kernel.documents.yaml import Node, from_builtins
from nephila.kernel.fragment_routes import ROUTE
from nephila.kernel.messages import CrawlJob

LOGOUT = r"(?i)([/=:_.?&]|user)(log|sign)[-_]?(out|off)([/?&=#.]|$)"
"""URLs that end a session when they are fetched."""


SHOWN = ("seeds", "scope", "strategy", "keywords", "politeness", "render", "sitemaps", "links", "cookies", "rules")
"""Fields that the document of a job has also with their defaults: who changes one of them finds all of them."""
_KEPT = 64
"""Decoded documents that are kept: services of one program read the same message, one after the other."""
_DECODER = msgspec.json.Decoder(JobSpec)


class JobDocument(msgspec.Struct, frozen=True):
    """A valid document."""

    content: dict[str, Any]
    """The document as JSON values, without defaults; `from_json` reads it again."""
    job: CrawlJob
    """The job, generation 0."""
    spec: JobSpec
    """What services read of the job."""
    files: tuple[str, ...]
    """Names of files of seeds. The job does not have them: they belong to the program that reads the document."""
    location: str

    @property
    def name(self) -> str:
        """The job's name and uid."""
        return self.job.uid

    @property
    def sinks(self) -> tuple[str, ...]:
        """The outputs in addition to the database."""
        return tuple(dict.fromkeys(sink.type for sink in self.spec.sinks))


def load(data: bytes, name: str) -> list[JobDocument]:
    """The jobs of a file, at least one. Raises `UsageError` in one line that begins with file:line:column."""
    return document_files.load(data, name, from_node, "job", "CrawlJob")


def from_json(content: Any, place: str = "job") -> JobDocument:
    """The job of parsed JSON. Raises `UsageError` that names the key."""
    return from_node(from_builtins(content, place))


def distinct(documents: Iterable[JobDocument]) -> list[JobDocument]:
    """The documents as a list. Raises `UsageError` if two of them have the same name."""
    return document_files.distinct(documents, "job")


def from_node(node: Node) -> JobDocument:
    """The job of a YAML node. Raises `UsageError` with the place."""
    document = read(node, schema.CrawlJob)
    content = msgspec.to_builtins(document)
    files = tuple(seed.file for seed in document.spec.seeds if seed.file)
    spec = settled(document.spec)
    return JobDocument(content, job_of(document.metadata.name, spec), spec, files, node.location)


# ---- the message


def job_of(uid: str, spec: JobSpec) -> CrawlJob:
    """The job of a `settled` spec, generation 0."""
    site = spec.site.name if spec.site is not None else ""
    running = msgspec.structs.replace(spec, paused=False)
    _leave_out_defaults(running)
    document = msgspec.json.encode(running)
    return CrawlJob(uid=uid, name=uid, paused=spec.paused, tenant=spec.tenant, site=site, document=document)


def _leave_out_defaults(value: Any) -> None:
    """Put the default itself where a value equals it: msgspec leaves out no other. So equal jobs have equal bytes."""
    if isinstance(value, list | dict):
        for inner in value.values() if isinstance(value, dict) else value:
            _leave_out_defaults(inner)
    elif isinstance(value, Section):
        for name in value.__struct_fields__:
            _leave_out_defaults(getattr(value, name))
        for name, default in zip(reversed(value.__struct_fields__), reversed(value.__struct_defaults__), strict=False):
            if getattr(value, name) == default:
                setattr(value, name, default)


def spec_of(job: CrawlJob) -> JobSpec:
    """The wanted state of a job. `CrawlJob.paused` counts, `JobSpec.paused` is never set here. It is decoded
    where a service takes over a job, not for each URL. The struct is shared and never changed. The message of a deleted
    job has no document: all its values are defaults."""
    return _decoded(job.document or b"{}")


@lru_cache(_KEPT)
def _decoded(document: bytes) -> JobSpec:
    return _DECODER.decode(document)


def with_spec(job: CrawlJob, **changed: Any) -> CrawlJob:
    """The job with other values of fields of its spec."""
    new = job_of(job.uid, settled(msgspec.structs.replace(spec_of(job), **changed)))
    new.generation, new.paused = job.generation, job.paused
    return new


def document_of(job: CrawlJob) -> dict[str, Any]:
    """The document of a job, without files of seeds; `from_json` reads the same job from it. A key with its default is
    left out, unless it is in `SHOWN`."""
    spec = spec_of(job)
    explicit = {"paused": job.paused, **{name: _whole(getattr(spec, name)) for name in SHOWN}}
    content = {**without_empty(msgspec.to_builtins(spec)), **explicit}
    return crawl_job(job.uid, content)


def crawl_job(name: str, spec: dict[str, Any]) -> dict[str, Any]:
    """The document with this spec, which is not checked."""
    return {"apiVersion": API_VERSION, "kind": "CrawlJob", "metadata": {"name": name}, "spec": spec}


def _whole(value: Any) -> Any:
    if not isinstance(value, Section):
        return msgspec.to_builtins(value)
    fields = {field.encode_name: getattr(value, field.name) for field in msgspec.structs.fields(value)}
    return {key: msgspec.to_builtins(field_value) for key, field_value in fields.items()}


def without_empty(content: dict[str, Any]) -> dict[str, Any]:
    """JSON values without sections that have only defaults."""
    inner = {key: without_empty(value) if isinstance(value, dict) else value for key, value in content.items()}
    return {key: value for key, value in inner.items() if value != {}}


def urls_of(spec: JobSpec) -> list[str]:
    """The pages among the seeds."""
    return [seed.url for seed in spec.seeds if seed.url]


def lists_of(spec: JobSpec) -> list[tuple[str, str]]:
    """The sitemaps and feeds among the seeds: (kind, URL)."""
    return [seed.source for seed in spec.seeds if seed.sitemap or seed.feed]


def keeps_routes(spec: JobSpec) -> bool:
    """Whether routes are part of the URLs of a job."""
    return ROUTE in spec.parse.follow


# ---- what follows from other keys


def settled(spec: JobSpec) -> JobSpec:
    """The spec in the form that services read: each value once, and with what follows from its keys."""
    spec = msgspec.structs.replace(
        spec,
        seeds=[seed for seed in spec.seeds if not seed.file],
        keywords=keywords(spec.keywords),
        windows=list(dict.fromkeys(spec.windows)),
        rules=list(dict.fromkeys(spec.rules)),
    )
    follow, exclude = list(dict.fromkeys(spec.parse.follow)), spec.scope.exclude
    if spec.render != "never" and ROUTE not in follow:
        # Routes are pages: only a browser can tell them apart.
        follow.append(ROUTE)
    if (spec.cookies or spec.login is not None) and LOGOUT not in exclude:
        # The fetch of a link that logs out would end the session.
        exclude = [*exclude, LOGOUT]
    spec.parse = msgspec.structs.replace(spec.parse, follow=follow)
    spec.scope = msgspec.structs.replace(spec.scope, exclude=exclude)
    return spec


def keywords(words: Iterable[str]) -> list[str]:
    """Keywords in the form that pages are compared with: lower case, blanks collapsed, each once."""
    return list(dict.fromkeys(text for word in words if (text := " ".join(word.lower().split()))))
