package postgres_test

import (
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/operatorkit/operatorkit/examples/internal/demotest"
	"github.com/operatorkit/operatorkit/operator/operatortest"
)

// isTold checks what the story says.
func isTold(t *testing.T, story string) {
	t.Helper()
	for _, want := range []string{
		`(?s)▸ alice orders .*✓ access to the clusters mcp-blue and workload is granted.*✓ orders is ready.*✓ orders is gone.*✓ orders is ready`,
		`everything has converged; the operator goes on until Ctrl-C`, `watch it at +http://127.0.0.1:\d+/\n`,
	} {
		if !regexp.MustCompile(want).MatchString(story) {
			t.Errorf("the story lacks %s", want)
		}
	}
}

func TestKubectlSeesTheClustersAndCtrlCEndsEverything(t *testing.T) {
	kubectl, err := operatortest.Binary(t.Context(), operatortest.Config{})
	if err != nil {
		t.Fatal(err)
	}
	d := demotest.Start(t)
	isTold(t, d.Story())

	for _, look := range []struct{ args, want string }{
		{"-n provider-postgres get accessrequests", "Granted"},
		{"--context onboarding -n team-blue get postgreses", "orders.postgres-team-blue.svc"},
		{"--context workload -n postgres-team-blue get statefulsets,services,pods -o name", "statefulset.apps/orders"},
		{"--context mcp -n team-blue get secrets -o name", "secret/orders-postgres"},
	} {
		get := exec.CommandContext(t.Context(), kubectl, append([]string{"kubectl", "--kubeconfig", d.Kubeconfig}, strings.Fields(look.args)...)...)
		out, err := get.CombinedOutput()
		if err != nil || !strings.Contains(string(out), look.want) {
			t.Errorf("kubectl %s does not show %s: %v\n%s", look.args, look.want, err, out)
		}
	}

	d.Interrupt()
}
