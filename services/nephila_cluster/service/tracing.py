"""Traces of single URLs through all services, as a bus around the bus of a service.

Every message of a URL carries its job, its fingerprint and the number of its fetch. Trace and span ids are derived from
them, so that all programs agree without a field in a message, and so is the choice of the URLs that are traced. A
service has no code for traces: the messages that it reads and publishes mark the start and the end of its span.

| span | begins | ends |
|---|---|---|
| schedule | request published | receipt read |
| fetch | request read | outcome published |
| parse | page read | record published |
| store | record read | receipt published |

`schedule` is the root and lasts as long as the URL is outstanding. Off (ratio 0), no such bus exists. On, a message
costs a comparison of its fingerprint; only URLs that are traced cost more.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from hashlib import md5
from typing import TYPE_CHECKING, Any

from nephila.kernel.bus.contract import DeadHandler, Delivery, Handler, Receipt
from nephila.kernel.bus.wrapper import BusWrapper
from nephila.kernel.runtime.clock import Clock
from nephila.kernel.topics import OUTCOMES, PAGES, RECEIPTS, RECORDS, REQUESTS, Topic

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

ROOT = "schedule"
READ, PUBLISHED = "read", "published"
BEGINS = {
    (PUBLISHED, REQUESTS): ROOT,
    (READ, REQUESTS): "fetch",
    (READ, PAGES): "parse",
    (READ, RECORDS): "store",
}
ENDS = {
    (PUBLISHED, OUTCOMES): "fetch",
    (PUBLISHED, RECORDS): "parse",
    (PUBLISHED, RECEIPTS): "store",
    (READ, RECEIPTS): ROOT,
}
SERVICE_GROUPS = {"scheduler", "downloader", "browser", "parser", "storage"}
"""Groups whose reading begins or ends a span; `raw` reads pages as well."""
OPEN_SPANS = 10_000
"""Spans without an end that are kept; the oldest is forgotten. A URL may move to another member."""
Key = tuple[str, bytes, int]
"""Job, fingerprint, number of the fetch."""


def is_traced(url_key: bytes, ratio: float) -> bool:
    """Whether a URL is traced: the same answer in every program, for `ratio` of all URLs."""
    return int.from_bytes(url_key[8:16], "big") < ratio * 2**64


def trace_id(key: Key) -> int:
    """The id of the trace of one fetch of a URL."""
    job, url_key, fetch_no = key
    text = job.encode("utf-8", "replace") + b"\0" + url_key + fetch_no.to_bytes(8, "big")
    return int.from_bytes(md5(text, usedforsecurity=False).digest(), "big") or 1


def span_id(trace: int, name: str) -> int:
    """The id of a span; a second one of the same name in a trace gets the same id."""
    digest = md5(trace.to_bytes(16, "big") + name.encode(), usedforsecurity=False).digest()
    return int.from_bytes(digest[:8], "big") or 1


class TracedBus(BusWrapper):
    """A bus that records spans; everything else is done by the bus within."""

    def __init__(self, bus: Any, clock: Clock, ratio: float, provider: TracerProvider) -> None:
        """`provider_of` makes the `provider`."""
        super().__init__(bus)
        self._clock = clock
        self._ratio = ratio
        self._ids = provider.id_generator
        self._tracer = provider.get_tracer("nephila")
        self._open: OrderedDict[tuple[str, Key], int] = OrderedDict()
        """(span, key) → when it began, nanoseconds since 1970 UTC."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._bus, name)

    def publish(self, topic: Topic, partition: int, message: Any) -> Receipt:
        self._note(PUBLISHED, topic, message)
        return super().publish(topic, partition, message)

    def publish_after(self, receipts: Iterable[Receipt], topic: Topic, partition: int, message: Any) -> Receipt:
        self._note(PUBLISHED, topic, message)
        return super().publish_after(receipts, topic, partition, message)

    def subscribe(
        self, topic: Topic, group: str, handler: Handler, *, credits: int, on_dead: DeadHandler | None = None
    ) -> None:
        marks = (READ, topic) in BEGINS or (READ, topic) in ENDS
        used = self._reading(topic, handler) if marks and group in SERVICE_GROUPS else handler
        super().subscribe(topic, group, used, credits=credits, on_dead=on_dead)

    def _reading(self, topic: Topic, handler: Handler) -> Callable[[Delivery], None]:
        def handle(delivery: Delivery) -> None:
            self._note(READ, topic, delivery.message)
            handler(delivery)

        return handle

    def _note(self, how: str, topic: Topic, message: Any) -> None:
        """Begin or end the spans of the URLs of a message."""
        begins, ends = BEGINS.get((how, topic)), ENDS.get((how, topic))
        if begins is None and ends is None:
            return
        for key in _keys(topic, message):
            if not is_traced(key[1], self._ratio):
                continue
            if begins is not None:
                self._open[begins, key] = int(self._clock.now() * 1e9)
                if len(self._open) > OPEN_SPANS:
                    self._open.popitem(last=False)
            if ends is not None:
                self._end(ends, key, message)

    def _end(self, name: str, key: Key, message: Any) -> None:
        from opentelemetry import trace

        began = self._open.pop((name, key), None)
        if began is None:
            return  # a record of the scheduler, or a span that began in another program
        number = trace_id(key)
        context = None
        if name != ROOT:
            flags = trace.TraceFlags(trace.TraceFlags.SAMPLED)
            parent = trace.SpanContext(number, span_id(number, ROOT), is_remote=True, trace_flags=flags)
            context = trace.set_span_in_context(trace.NonRecordingSpan(parent))
        self._ids.next = number, span_id(number, name)  # type: ignore[attr-defined]
        attributes: dict[str, str | int] = {
            "nephila.job": key[0],
            "nephila.url_key": key[1].hex(),
            "nephila.fetch_no": key[2],
        }
        span = self._tracer.start_span(name, context, start_time=began, attributes=attributes)
        for attribute, value in _attributes(message):
            span.set_attribute(attribute, value)
        span.end(int(self._clock.now() * 1e9))


def _keys(topic: Topic, message: Any) -> Iterator[Key]:
    if topic is RECEIPTS:
        for receipt in message.receipts:
            yield message.job, receipt.url_key, receipt.fetch_no
    elif message.job:  # robots.txt belongs to no job
        yield message.job, message.url_key, message.fetch_no


def _attributes(message: Any) -> Iterator[tuple[str, Any]]:
    url = getattr(message, "url", "")
    if url:
        yield "url.full", url
    if getattr(message, "status", 0):
        yield "http.response.status_code", message.status
    if getattr(message, "reason", ""):
        yield "error.type", message.reason


def provider_of(service: str, member: str, processor: Any) -> TracerProvider:
    """A provider of tracers for `TracedBus`; `processor` gets the spans. Raises `ImportError` without the extra."""
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.id_generator import IdGenerator

    class GivenIds(IdGenerator):
        """Ids that are set before each span; all spans start on the thread of the event loop."""

        next = (1, 1)

        def generate_trace_id(self) -> int:
            return self.next[0]

        def generate_span_id(self) -> int:
            return self.next[1]

    resource = Resource.create({"service.name": f"nephila-{service}", "service.instance.id": member})
    provider = TracerProvider(resource=resource, id_generator=GivenIds(), shutdown_on_exit=False)
    provider.add_span_processor(processor)
    return provider


def to_endpoint(service: str, member: str, endpoint: str) -> TracerProvider:
    """A provider that sends spans in batches to a collector (OTLP over HTTP), from a thread of its own."""
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    return provider_of(service, member, BatchSpanProcessor(OTLPSpanExporter(endpoint=endpoint)))
