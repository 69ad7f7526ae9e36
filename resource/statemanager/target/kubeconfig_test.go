package target_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/operatorkit/operatorkit/resource/statemanager/target"
)

const address = "https://prod.example.com"

// secretText is what no message may tell.
const secretText = "hunter2-hunter2"

func TestKubeconfigsThatMustNotBeUsedAreRefused(t *testing.T) {
	cluster := func(change func(*clientcmdapi.Cluster)) func(*testing.T) []byte {
		return func(t *testing.T) []byte {
			c := &clientcmdapi.Cluster{Server: address}
			change(c)
			return write(t, c, &clientcmdapi.AuthInfo{Token: secretText})
		}
	}
	admin := func(info clientcmdapi.AuthInfo) func(*testing.T) []byte {
		return func(t *testing.T) []byte { return write(t, &clientcmdapi.Cluster{Server: address}, &info) }
	}
	text := func(s string) func(*testing.T) []byte { return func(*testing.T) []byte { return []byte(s) } }
	for name, row := range map[string]struct {
		kubeconfig func(*testing.T) []byte
		want       []string
	}{
		"exec": {
			admin(clientcmdapi.AuthInfo{Exec: &clientcmdapi.ExecConfig{Command: "/bin/sh", Args: []string{"-c", secretText}, APIVersion: "client.authentication.k8s.io/v1", InteractiveMode: "Never"}}),
			[]string{`user "admin"`, `the program "/bin/sh" (exec) is not run`, "use a token or a client certificate"},
		},
		"auth provider": {
			admin(clientcmdapi.AuthInfo{AuthProvider: &clientcmdapi.AuthProviderConfig{Name: "oidc", Config: map[string]string{"client-secret": secretText}}}),
			[]string{`the plugin "oidc" (auth-provider) is not used`},
		},
		"several files": {
			admin(clientcmdapi.AuthInfo{TokenFile: "/var/run/token", ClientCertificate: "/etc/cert", ClientKey: "/etc/key"}),
			[]string{`"/var/run/token" (tokenFile)`, `"/etc/cert" (client-certificate)`, `"/etc/key" (client-key)`, "put the key into client-key-data"},
		},
		"file of the CA": {
			cluster(func(c *clientcmdapi.Cluster) { c.CertificateAuthority = "/etc/passwd" }),
			[]string{`"/etc/passwd" (certificate-authority) is not read`, "certificate-authority-data"},
		},
		"plain text":      {cluster(func(c *clientcmdapi.Cluster) { c.Server = "http://prod.example.com" }), []string{"server must be an https:// address"}},
		"file as server":  {cluster(func(c *clientcmdapi.Cluster) { c.Server = "file:///etc/passwd" }), []string{"server must be an https:// address"}},
		"user in server":  {cluster(func(c *clientcmdapi.Cluster) { c.Server = "https://me:" + secretText + "@prod" }), []string{"without user"}},
		"strange proxy":   {cluster(func(c *clientcmdapi.Cluster) { c.ProxyURL = "file:///socket" }), []string{"proxy-url must be"}},
		"CA is no PEM":    {cluster(func(c *clientcmdapi.Cluster) { c.CertificateAuthorityData = []byte(secretText) }), []string{"certificates", "can't be used"}},
		"CA and insecure": {cluster(func(c *clientcmdapi.Cluster) { c.CertificateAuthorityData, c.InsecureSkipTLSVerify = []byte("x"), true }), []string{"can't be used"}},
		"line break":      {admin(clientcmdapi.AuthInfo{Token: secretText + "\nX-Other: header"}), []string{"token holds characters"}},
		"key without certificate": {
			admin(clientcmdapi.AuthInfo{ClientKeyData: []byte(secretText), ClientCertificateData: []byte(secretText)}),
			[]string{"can't be used"},
		},
		"token and password": {admin(clientcmdapi.AuthInfo{Token: secretText, Username: "me", Password: secretText}), []string{"not both"}},
		"no YAML":            {text("\t: [" + secretText), []string{"not a kubeconfig", "apiVersion v1 and kind Config"}},
		"another kind":       {text("apiVersion: v1\nkind: Secret\nstringData: {a: " + secretText + "}"), []string{"not a kubeconfig"}},
		"wrong type":         {text("apiVersion: v1\nkind: Config\nclusters: " + secretText), []string{"not a kubeconfig"}},
		"empty":              {text("apiVersion: v1\nkind: Config"), []string{`current-context is ""`, "set it"}},
		"no cluster":         {text("apiVersion: v1\nkind: Config\ncurrent-context: a\ncontexts: [{name: a, context: {cluster: b}}]"), []string{`names the cluster "b"`}},
		"no user": {
			text("apiVersion: v1\nkind: Config\ncurrent-context: a\ncontexts: [{name: a, context: {cluster: b, user: c}}]\nclusters: [{name: b, cluster: {server: " + address + "}}]"),
			[]string{`names the user "c"`},
		},
		"huge":            {text("apiVersion: v1\nkind: Config\n#" + strings.Repeat("x", target.DefaultMaxKubeconfig)), []string{"131101 bytes", "131072"}},
		"many references": {text(laughs()), []string{"not a kubeconfig"}},
		"deep":            {text("apiVersion: v1\nkind: Config\nclusters: " + strings.Repeat("[", 60_000)), []string{"not a kubeconfig"}},
		"long names":      {text("apiVersion: v1\nkind: Config\ncurrent-context: " + strings.Repeat("x", 100_000)), []string{"current-context"}},
	} {
		t.Run(name, func(t *testing.T) {
			kubeconfig := row.kubeconfig(t)
			inBubble(t, nil, func(t *testing.T, b *bubble) {
				b.deploy("prod")
				b.secretOf("prod", kubeconfig)
				b.serve("prod", healthy)
				c, err := b.clusters.Acquire(bubbleKey("prod"), user)
				if err != nil {
					t.Fatal(err)
				}
				b.expect(c, target.KubeconfigInvalid)
				told := c.Err().Error()
				for _, want := range append(row.want, "cluster platform/prod", `Secret platform/prod-kubeconfig, key "value"`) {
					if !strings.Contains(told, want) {
						t.Errorf("%q is missing in: %s", want, told)
					}
				}
				everything := told + c.Condition().Message + b.log.String()
				if strings.Contains(everything, secretText) {
					t.Errorf("a secret is told in: %s", everything)
				}
				if len(everything) > 10_000 {
					t.Errorf("%d bytes are told of it", len(everything))
				}
				if _, err := b.request(t.Context(), c, "/api"); unreachable(t, err).NextTry.IsZero() != true {
					t.Errorf("err = %v, want none that promises another try", err)
				}
			})
		})
	}
}

// laughs returns a short document that is very long when its references are followed.
func laughs() string {
	lines := []string{"apiVersion: v1", "kind: Config", "a0: &a0 [x, x, x, x, x, x, x, x, x, x]"}
	for i := range 12 {
		lines = append(lines, fmt.Sprintf("a%d: &a%d [%s*a%d]", i+1, i+1, strings.Repeat(fmt.Sprintf("*a%d, ", i), 9), i))
	}
	return strings.Join(lines, "\n")
}

func TestOnlyTheCurrentContextCounts(t *testing.T) {
	inBubble(t, nil, func(_ *testing.T, b *bubble) {
		c := b.cluster("prod", healthy)
		b.secretOf("prod", []byte(`apiVersion: v1
kind: Config
current-context: main
contexts:
- {name: main, context: {cluster: prod, user: admin}}
- {name: other, context: {cluster: prod, user: shell}}
clusters: [{name: prod, cluster: {server: "`+address+`"}}]
users:
- {name: admin, user: {token: t}}
- {name: shell, user: {exec: {command: /bin/sh, apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never}}}
`))
		b.expect(c, target.Connected)
	})
}

func TestTheKubeconfigIsWhereTheDeploymentSays(t *testing.T) {
	cd := deployment("prod")
	secret, entry := target.KubeconfigSecret(cd)
	if diff := cmp.Diff([]any{bubbleKey("prod-kubeconfig"), "value"}, []any{secret, entry}); diff != "" {
		t.Errorf("default (-want +got):\n%s", diff)
	}
	cd.Spec.Kubeconfig.SecretName, cd.Spec.Kubeconfig.Key = "access", "config"
	secret, entry = target.KubeconfigSecret(cd)
	if diff := cmp.Diff([]any{bubbleKey("access"), "config"}, []any{secret, entry}); diff != "" {
		t.Errorf("set (-want +got):\n%s", diff)
	}
}

func TestWhatIsMissingIsNamedAndNoticedWhenItComes(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, b *bubble) {
		b.serve("prod", healthy)
		c, err := b.clusters.Acquire(bubbleKey("prod"), user)
		if err != nil {
			t.Fatal(err)
		}
		says := func(state target.State, want string) {
			t.Helper()
			b.expect(c, state)
			if got := c.Condition().Message; !strings.Contains(got, want) {
				t.Errorf("%q is missing in: %s", want, got)
			}
		}
		says(target.ClusterMissing, "there is no ClusterDeployment platform/prod")
		b.deploy("prod")
		says(target.SecretMissing, "there is no Secret platform/prod-kubeconfig")
		b.secretOf("prod", nil)
		says(target.SecretMissing, `has nothing under the key "value"`)
		b.secret("prod", address)
		says(target.Connected, address)

		cd := deployment("prod")
		cd.Spec.Kubeconfig.SecretName = "access"
		if err := b.deployments.Update(cd); err != nil {
			t.Fatal(err)
		}
		says(target.SecretMissing, "there is no Secret platform/access")
		if err := b.deployments.Delete(cd); err != nil {
			t.Fatal(err)
		}
		says(target.ClusterMissing, "platform/prod")
	})
}
