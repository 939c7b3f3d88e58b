"""`nephila up` as a process, and what is asked of it."""

from __future__ import annotations

import json
import os
import signal
import subprocess

from tests.e2e.web import NEPHILA, run

QUICK = {"NEPHILA_SCHEDULER__ADDRESS_GAP_S": "0", "NEPHILA_DOWNLOADER__LIMITS__ADDRESS_GAP_S": "0"}
"""All hosts here are one server; what one address may bear has tests of its own."""


def job(name, **spec):
    """One document, as YAML's part that JSON is."""
    spec = {"seeds": [f"http://{name}.test/0"], "politeness": {"delay": "0"}, **spec}
    document = {"apiVersion": "nephila.dev/v1", "kind": "CrawlJob", "metadata": {"name": name}, "spec": spec}
    return "---\n" + json.dumps(document) + "\n"


class Program:
    """`nephila up --out o`, and questions to it."""

    def __init__(self, cwd, *words, command=NEPHILA, **env):
        self.cwd = cwd
        self.command = command
        self.words = words
        self.env = env
        self.start()

    def start(self):
        self.process = subprocess.Popen(
            [*self.command, "up", "--out", "o", "--allow-private", *self.words],
            cwd=self.cwd,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **self.env},
        )
        self.ready = self.process.stdout.readline()

    def end(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        out, err = self.process.communicate(timeout=30)
        # A program that runs for more than a minute has printed how its jobs stand.
        err = "".join(line for line in err.splitlines(keepends=True) if " other ends · " not in line)
        return self.process.returncode, out, err

    def jobs(self, *words, code=0):
        done = run("jobs", *words, "--out", "o", cwd=self.cwd)
        assert done.returncode == code, done.stderr
        assert "Traceback" not in done.stderr
        return done

    def apply(self, text, code=0):
        (self.cwd / "jobs.yaml").write_text(text)
        return self.jobs("apply", "-f", "jobs.yaml", code=code)

    def list(self):
        return {one["name"]: one for one in json.loads(self.jobs("list", "--json").stdout)}

    def until(self, reached):
        """Ask again until the list of jobs is as wanted; returns it. Each question is a program of its own, so that
        asking takes the time that waiting would."""
        for _ in range(200):
            found = self.list()
            if reached(found):
                return found
        raise AssertionError(f"never came: {found}")
