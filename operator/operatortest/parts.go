package operatortest

import (
	"strconv"
	"strings"
)

// etcdArgs are the flags of the store. They belong to our own sub-command.
func etcdArgs(clientURL, dataDir string, certs *certificates, config Config) []string {
	return []string{
		"--data-dir=" + dataDir,
		"--listen-client-url=" + clientURL,
		"--cert-file=" + certs.path("etcd.crt"),
		"--key-file=" + certs.path("etcd.key"),
		"--trusted-ca-file=" + certs.path(etcdAuthority+".crt"),
		"--unsafe-no-fsync=" + strconv.FormatBool(!config.Fsync),
	}
}

func apiServerArgs(port int, etcdURL, dataDir string, certs *certificates, config Config) []string {
	return append([]string{
		"--bind-address=" + loopback,
		"--secure-port=" + strconv.Itoa(port),
		"--tls-cert-file=" + certs.path("kube-apiserver.crt"),
		"--tls-private-key-file=" + certs.path("kube-apiserver.key"),
		"--client-ca-file=" + certs.path(clientAuthority+".crt"),
		"--token-auth-file=" + certs.path(tokensFile),
		"--authorization-mode=RBAC",
		"--etcd-servers=" + etcdURL,
		"--etcd-cafile=" + certs.path(etcdAuthority+".crt"),
		"--etcd-certfile=" + certs.path("etcd-client.crt"),
		"--etcd-keyfile=" + certs.path("etcd-client.key"),
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + certs.path(serviceAccountKey),
		"--service-account-signing-key-file=" + certs.path(serviceAccountKey),
		"--service-cluster-ip-range=10.96.0.0/16",
		// The plugin would refuse pods until a controller has made their
		// service account.
		"--disable-admission-plugins=ServiceAccount",
		"--allow-privileged=true",
		// No pod will ever reach the API server through its Service: no need to
		// keep addresses for it, which loopback can't be.
		"--advertise-address=" + loopback,
		"--endpoint-reconciler-type=none",
		"--audit-policy-file=" + certs.path(auditPolicyFile),
		"--audit-log-path=" + auditLog(dataDir),
	}, config.APIServerFlags...)
}

func controllersArgs(port int, kubeconfig string, certs *certificates, config Config) []string {
	controllers := append([]string{"clusterrole-aggregation-controller"}, config.Controllers...)
	return append([]string{
		"--kubeconfig=" + kubeconfig,
		"--controllers=" + strings.Join(controllers, ","),
		"--leader-elect=false",
		"--bind-address=" + loopback,
		"--secure-port=" + strconv.Itoa(port),
		"--tls-cert-file=" + certs.path("kube-apiserver.crt"),
		"--tls-private-key-file=" + certs.path("kube-apiserver.key"),
		"--kube-api-qps=200",
		"--kube-api-burst=400",
	}, config.ControllerManagerFlags...)
}
