"""A job that needs an absent package is refused before its crawl begins."""

from __future__ import annotations

import pytest
from nephila.kernel.documents.job_schema import JobSpec
from nephila.kernel.documents.login_schema import Login, LoginField
from nephila.kernel.documents.scheme_schema import Schemes
from nephila.kernel.runtime import extensions
from nephila.kernel.runtime.errors import UsageError
from nephila.programs.crawl.stored import check_packages


@pytest.mark.parametrize(
    ("package", "spec", "key"),
    [
        ("nephila_login", JobSpec(login=Login("http://a.test/login", [LoginField("user", "me")])), "login"),
        ("nephila_harvest", JobSpec(schemes=Schemes([])), "schemes"),
    ],
    ids=["login", "schemes"],
)
def test_a_key_without_its_package_is_one_line(
    monkeypatch: pytest.MonkeyPatch, package: str, spec: JobSpec, key: str
) -> None:
    monkeypatch.setattr(extensions, "_has_package", lambda target: not target.startswith(package))
    check_packages(JobSpec())
    with pytest.raises(UsageError, match=rf"^spec\.{key}: the package {package} is not installed"):
        check_packages(spec)
