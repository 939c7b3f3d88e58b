"""Programs that are all ended after their test."""

from __future__ import annotations

import pytest

from tests.e2e.program import QUICK, Program


@pytest.fixture
def up(tmp_path):
    """A factory of `nephila up` against a little web, or with words and environment of one's own, in a folder."""
    programs = []

    def start(web=None, *words, folder=tmp_path, **env):
        if web is not None:
            words, env = ("--host-map", web.host_map, *words), {**QUICK, **env}
        programs.append(Program(folder, *words, **env))
        return programs[-1]

    yield start
    for program in programs:
        if program.process.poll() is None:
            program.process.kill()
        program.process.communicate()
