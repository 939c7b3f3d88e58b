"""A job that needs an absent package is refused before its crawl begins."""

from __future__ import annotations

import pytest
from nephila.kernel.documents.job_schema import JobSpec
from nephila.kernel.documents.login_schema import Login, LoginField
from nephila.kernel.runtime import extensions
from nephila.kernel.runtime.errors import UsageError
from nephila.programs.crawl.stored import check_packages


def test_a_login_without_its_package_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extensions, "_has_package", lambda target: not target.startswith("nephila_login"))
    check_packages(JobSpec())
    with pytest.raises(UsageError, match=r"^spec\.login: the package nephila_login is not installed"):
        check_packages(JobSpec(login=Login("http://a.test/login", [LoginField("user", "me")])))
