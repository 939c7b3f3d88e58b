"""A crawl as an asset of Dagster: `crawl_asset("https://example.org/", name="example", out="data/example")`.

A materialisation continues an interrupted crawl and begins a finished one again; the result before is kept in OUT/old.
It fails when no page was stored. Other orchestrators: docs/python.md.
"""

# Without `annotations` of __future__: Dagster reads the annotation of `context` as a class.
from collections import Counter
from pathlib import Path
from typing import Any

from dagster import AssetExecutionContext, AssetsDefinition, Failure, MaterializeResult, MetadataValue, asset
from nephila.api import crawl
from nephila.api.options import Rules
from nephila.kernel.runtime.errors import UserError
from nephila.programs.output_directory import OutputDirectory


def crawl_asset(
    *seeds: str,
    name: str,
    out: str | Path,
    rules: Rules | None = None,
    group_name: str | None = None,
    **options: Any,
) -> AssetsDefinition:
    """`options` are those of `nephila.crawl`. The metadata has pages by outcome, items, seconds and the directory."""

    @asset(name=name, group_name=group_name, description=f"Pages of {', '.join(seeds)}", kinds={"nephila"})
    def crawled(context: AssetExecutionContext) -> MaterializeResult[Any]:
        items = 0
        try:
            run = OutputDirectory(Path(out)).read()
            fresh = run is not None and run.state == "finished"
            going = crawl(*seeds, out=out, resume=run is not None and not fresh, fresh=fresh, rules=rules, **options)
            with going as pages:
                for page in pages:
                    items += len(page.items)
        except UserError as error:
            raise Failure(str(error)) from None
        end = pages.end
        assert end is not None
        if end.problem:
            raise Failure(end.problem, metadata={"reasons": MetadataValue.json(dict(end.reasons))})
        counts = Counter(end.outcomes)
        context.log.info("%d pages stored in %.0f s (%s)", counts["stored"], end.elapsed_s, end.reason)
        facts = {
            **{outcome: MetadataValue.int(number) for outcome, number in counts.items()},
            "items": MetadataValue.int(items),
            "left": MetadataValue.int(end.left),
            "seconds": MetadataValue.float(round(end.elapsed_s, 1)),
            "directory": MetadataValue.path(str(Path(out).resolve())),
            "ended": MetadataValue.text(end.reason),
        }
        return MaterializeResult(metadata=facts)

    return crawled
