"""The official JavaScript client of Firecrawl, unchanged, against this program and a small site: `make show-firecrawl`.

Needs Node and npm; the client is installed below build/.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from nephila_control.access.authority import Authority, administrator
from nephila_control.http.application import application
from nephila_control.http.server import tcp_server
from nephila_doors.firecrawl.application import routes

from tests.doors.adapter_rig import running

CLIENT = "@mendable/firecrawl-js@4.42.0"
KEY = "0123456789abcdef"
SCRIPT = """
import Firecrawl from '@mendable/firecrawl-js';
const client = new Firecrawl({apiKey: process.env.KEY, apiUrl: process.env.API});
const page = await client.scrape('http://a.test/', {formats: ['markdown', 'links']});
console.log('scrape', page.metadata.title, page.metadata.statusCode, page.links.length, 'links');
console.log('map', (await client.map('http://b.test/')).links.map(one => one.url).join(' '));
const crawl = await client.crawl('http://c.test/', {limit: 10, pollInterval: 1});
console.log('crawl', crawl.status, crawl.data.length, 'documents');
const batch = await client.batchScrape(['http://d.test/green', 'http://e.test/black'], {pollInterval: 1});
console.log('batch', batch.status, batch.data.length, 'documents');
const begun = await client.startCrawl('http://f.test/', {limit: 5});
console.log('cancel', await client.cancelCrawl(begun.id), (await client.getCrawlStatus(begun.id)).status);
for (const [name, wrong] of [
  ['robots.txt', () => client.scrape('http://g.test/private/x')],
  ['format', () => client.scrape('http://g.test/', {formats: ['summary']})],
  ['unknown', () => client.getCrawlStatus('none')],
]) {
  try {
    await wrong();
    console.log('no error:', name);
    process.exitCode = 1;
  } catch (error) {
    console.log(name, '->', error.message);
  }
}
"""


def _prepare(place: Path) -> None:
    place.mkdir(parents=True, exist_ok=True)
    (place / "package.json").write_text('{"private": true}')
    (place / "client.mjs").write_text(SCRIPT)


async def main() -> int:
    """The exit code of the client's script."""
    npm, node = shutil.which("npm"), shutil.which("node")
    if npm is None or node is None:
        print("show-firecrawl needs Node: node and npm are not on the PATH", file=sys.stderr)
        return 1
    place = Path("build/firecrawl-js")
    _prepare(place)
    install = await asyncio.to_thread(subprocess.run, [npm, "install", "--silent", CLIENT], cwd=place, check=False)
    if install.returncode:
        return install.returncode
    with tempfile.TemporaryDirectory() as directory:
        async with running(Path(directory)) as rig:
            authority = Authority(rig.control, administrator(KEY))
            served = application(rig.control, authority=authority, beside=routes(authority))
            server = tcp_server(served, "127.0.0.1", 0, "--api")
            await server.open()
            environment = {**os.environ, "KEY": KEY, "API": f"http://127.0.0.1:{server.port}"}
            client = await asyncio.create_subprocess_exec(node, "client.mjs", cwd=place, env=environment)
            code = await client.wait()
            await server.close()
    return code


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
