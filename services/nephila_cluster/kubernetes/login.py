"""The login at the API server of Kubernetes, by the official client: service account, or kubeconfig of any kind.

`kubernetes` reads the configuration and runs login programs (exec of EKS, GKE and AKS, OIDC); requests are sent by
others. It is imported here alone, and at the first login: its import takes a second.
"""

from __future__ import annotations

import os
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from nephila.kernel.runtime.errors import UserError

SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
DEFAULT_NAMESPACE: Final = "default"


@dataclass(frozen=True, slots=True)
class Login:
    """The address of the API server, and the credentials for it."""

    server: str
    namespace: str
    """That of the pod, or of the context of the kubeconfig."""
    authorization: str = ""
    """Value of the header: scheme and token."""
    ca_path: str | None = None
    certificate_path: str | None = None
    key_path: str | None = None
    verify: bool = True
    server_name: str | None = None
    """Name in the certificate of the server, where it is not that of the URL."""
    proxy: str | None = None

    @property
    def headers(self) -> dict[str, str]:
        """Headers of each request."""
        return {"Authorization": self.authorization} if self.authorization else {}

    def tls(self) -> ssl.SSLContext | bool:
        """The TLS context for the server; False for http. Raises `UserError` for a certificate that cannot be read."""
        if not self.server.startswith("https:"):
            return False
        try:
            context = ssl.create_default_context(cafile=self.ca_path)
            if self.certificate_path:
                context.load_cert_chain(self.certificate_path, self.key_path)
        except OSError as error:  # SSLError is one
            raise UserError(f"the kubeconfig cannot be used: {error}") from None
        if not self.verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context


def log_in(context: str = "") -> Login:
    """The login of the service account of the pod, else of a context of the kubeconfig (KUBECONFIG, ~/.kube/config),
    by default the current one. Reads files and may run a login program: seconds. Raises `UserError`."""
    import kubernetes.config
    from kubernetes.client import Configuration

    config: Any = kubernetes.config  # without types
    configuration = Configuration()
    in_cluster = not context and "KUBERNETES_SERVICE_HOST" in os.environ and (SERVICE_ACCOUNT / "token").exists()
    try:
        if in_cluster:
            config.load_incluster_config(client_configuration=configuration)
            namespace = _own_namespace()
        else:
            file = os.environ.get("KUBECONFIG") or config.KUBE_CONFIG_DEFAULT_LOCATION
            config.load_kube_config(file, context or None, configuration, persist_config=False)
            namespace = _namespace_of(config, file, context)
        authorization = _authorization(configuration)
    except Exception as error:  # of the file system, YAML, a login program, or a key that a kubeconfig lacks
        if isinstance(error, config.ConfigException) and not _kubeconfig_exists():
            raise UserError("there is neither a service account nor a kubeconfig") from None
        text = " ".join(str(error).split())
        raise UserError(f"the kubeconfig cannot be used: {type(error).__name__}: {text}") from None
    return Login(
        server=configuration.host.rstrip("/"),
        namespace=namespace,
        authorization=authorization,
        ca_path=configuration.ssl_ca_cert,
        certificate_path=configuration.cert_file,
        key_path=configuration.key_file,
        verify=configuration.verify_ssl,
        server_name=configuration.tls_server_name or None,
        proxy=configuration.proxy or None,
    )


def _authorization(configuration: Any) -> str:
    # Versions before 36 name it otherwise.
    value = (
        configuration.get_api_key_with_prefix("BearerToken")
        or configuration.get_api_key_with_prefix("authorization")
        or ""
    )
    scheme, _, token = value.strip().partition(" ")
    return f"Bearer {token.strip()}" if scheme.lower() == "bearer" else value.strip()


def _own_namespace() -> str:
    try:
        return (SERVICE_ACCOUNT / "namespace").read_text(encoding="ascii").strip()
    except OSError:
        return DEFAULT_NAMESPACE


def _namespace_of(config: Any, file: str, context: str) -> str:
    contexts, current = config.list_kube_config_contexts(file)
    chosen = next((entry for entry in contexts if entry["name"] == context), current)
    return str(chosen["context"].get("namespace") or DEFAULT_NAMESPACE)


def _kubeconfig_exists() -> bool:
    places = os.environ.get("KUBECONFIG") or "~/.kube/config"
    return any(Path(path).expanduser().exists() for path in places.split(os.pathsep))
