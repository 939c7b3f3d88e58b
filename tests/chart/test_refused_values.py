"""Values that would render, and fail in the cluster: the schema or a template refuses them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.chart.test_chart import template

EXTERNAL = '{"kafka": {"mode": "external", "external": {"bootstrap": "kafka.test:9092"}}}'


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ('{"downloader": {"resources": {"requests": {"cpu": "half"}}}}', "/downloader/resources/requests/cpu"),
        ('{"storage": {"resources": {"limits": {"memory": "1GB"}}}}', "/storage/resources/limits/memory"),
        ('{"scheduler": {"persistence": {"size": "10 Gi"}}}', "/scheduler/persistence/size"),
        ('{"kafka": {"dev": {"storage": "-8Gi"}}}', "/kafka/dev/storage"),
        ('{"api": {"replicas": -1}}', "/api/replicas"),
        ('{"nameOverride": "Web_Crawl"}', "/nameOverride"),
        ('{"image": {"tag": "1.0 beta"}}', "/image/tag"),
        ('{"imagePullSecrets": ["regcred"]}', "/imagePullSecrets/0"),
        ('{"commonLabels": {"team": "a b"}}', "/commonLabels/team"),
        ('{"commonLabels": {"cost": 12}}', "/commonLabels/cost"),
        ('{"pod": {"annotations": {"inject": true}}}', "/pod/annotations/inject"),
        ('{"crawler": {"networks": ["10.0.0.0/8"]}}', "/crawler/networks/0"),
        ('{"networkPolicy": {"deniedNetworks": ["10.0.0.1"]}}', "/networkPolicy/deniedNetworks/0"),
        ('{"kafka": {"mode": "external", "external": {"bootstrap": "kafka.test"}}}', "/kafka/external/bootstrap"),
        ('{"kafka": {"config": {"prefix": "web/"}}}', "/kafka/config/prefix"),
        ('{"kafka": {"dev": {"runAsUser": 0}}}', "/kafka/dev/runAsUser"),
        ('{"blobStore": {"url": "https://bucket"}}', "/blobStore/url"),
        ('{"blobStore": {"persistence": {"enabled": true, "accessModes": ["RWX"]}}}', "/blobStore/persistence/accessM"),
        ('{"storage": {"config": {"formats": ["gzip"]}}}', "/storage/config/formats/0"),
        ('{"scheduler": {"config": {"retry_delay_s": -1}}}', "/scheduler/config/retry_delay_s"),
        ('{"downloader": {"config": {"http": {"fetcher": "curl"}}}}', "/downloader/config/http/fetcher"),
        ('{"database": {"external": {"existingSecret": "My Secret"}}}', "/database/external/existingSecret"),
        ('{"rules": {"git": {"period": "ten"}}}', "/rules/git/period"),
        ('{"monitoring": {"podMonitor": {"interval": "15"}}}', "/monitoring/podMonitor/interval"),
        ('{"pod": {"extraEnv": [{"value": "b"}]}}', "/pod/extraEnv/0"),
        ('{"downloader": {"autoscaling": {"enabled": true, "minReplicas": 20}}}', "minReplicas is above maxReplicas"),
        ('{"storage": {"keda": {"enabled": true, "minReplicas": 20}}}', "storage.keda.minReplicas is above"),
        ('{"parser": {"keda": {"enabled": true, "lagPerReplica": 0}}}', "/parser/keda/lagPerReplica"),
        ('{"crawler": {"drainSeconds": 60}}', "terminationGracePeriodSeconds is not above crawler.drainSeconds"),
        ('{"networkPolicy": {"kafka": {"ports": [99999]}}}', "/networkPolicy/kafka/ports/0"),
    ],
)
def test_a_value_that_fails_later_is_refused_at_once(tmp_path: Path, values: str, says: str) -> None:
    json.loads(values)
    (tmp_path / "values.yaml").write_text(values)
    done = template("-f", str(tmp_path / "values.yaml"))
    assert done.returncode != 0
    assert says in done.stderr


@pytest.mark.parametrize(
    "values",
    [
        EXTERNAL,
        '{"kafka": {"mode": "external", "external": {"bootstrap": "a:9092, b.c:9093,[2001:db8::1]:9092"}}}',
        '{"downloader": {"resources": {"requests": {"cpu": 0.5, "memory": "1.5Gi"}, "limits": {"memory": 9e8}}}}',
        '{"crawler": {"networks": ["203.0.113.0/24=8/0.05", "2001:db8::/32=4"]}}',
        '{"rules": {"git": {"period": "1m30s"}}}',
        '{"monitoring": {"dashboards": {"enabled": true, "labels": {"a/b": "c"}}}}',
        '{"scheduler": {"persistence": {"size": ""}}}',
        '{"blobStore": {"url": "s3://bucket"}}',
        '{"image": {"repository": "registry.example:5000/team/nephila"}}',
    ],
)
def test_what_a_cluster_accepts_is_accepted(tmp_path: Path, values: str) -> None:
    (tmp_path / "values.yaml").write_text(values)
    done = template("-f", str(tmp_path / "values.yaml"))
    assert done.returncode == 0, done.stderr
