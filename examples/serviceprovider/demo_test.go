package postgres_test

import (
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/operatorkit/operatorkit/examples/internal/demotest"
	"github.com/operatorkit/operatorkit/operator/operatortest"
)

// maxLines is how long the story may be.
const maxLines = 80

// isTold checks what the story says, and that it is short.
func isTold(t *testing.T, story string) {
	t.Helper()
	for _, want := range []string{
		`(?s)▸ alice orders .*✓ it is given the clusters mcp-blue and workload.*✓ access to both is granted.*✓ orders is ready`,
		`✓ with its credentials nothing else can be read: .* \(403\)`,
		`(?s)! clusterrequest of reports .*workload has 1 of 1 requests.*~ cluster/workload .*1 → 2.*✓ reports is ready`,
		`(?s)config is changed.*✓ orders runs with it.*✓ reports runs with it`,
		`(?s)due for renewal.*✓ there is another token for mcp.*✓ there is another token for workload.*✓ orders was ready all the time`,
		`(?s)deletes the service account .*✓ there is another one.*✓ the one before is refused \(401\)`,
		`(?s)Secret .* is changed.*✓ orders has it in workload, by the new token.*✓ reports has it in workload`,
		`(?s)▸ alice deletes orders.*✓ orders is gone.*✓ nothing of it is left .*✓ nothing of its access is left .*✓ its tokens are refused \(401\).*✓ reports goes on`,
		`(?s)▸ somebody deletes the service of reports.*the provider plans:.*\+ Service postgres-team-green/reports.*1 to create, 0 to update, 0 to delete.*✓ it is there again`,
		`(?s)▸ the provider's rights were enough.*✓ none but those for failures and for older API servers`,
		`everything has converged; the operator goes on until Ctrl-C`, `watch it at +http://127.0.0.1:\d+/\n`,
	} {
		if !regexp.MustCompile(want).MatchString(story) {
			t.Errorf("the story lacks %s", want)
		}
	}
	if lines := strings.Count(story, "\n"); lines > maxLines {
		t.Errorf("the story has %d lines, which is more than %d", lines, maxLines)
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
		{"--context onboarding -n team-green get postgreses", "reports.postgres-team-green.svc"},
		{"--context workload -n postgres-team-green get statefulsets,services,pods -o name", "statefulset.apps/reports"},
		{"--context mcp -n team-green get secrets -o name", "secret/reports-postgres"},
	} {
		get := exec.CommandContext(t.Context(), kubectl, append([]string{"kubectl", "--kubeconfig", d.Kubeconfig}, strings.Fields(look.args)...)...)
		out, err := get.CombinedOutput()
		if err != nil || !strings.Contains(string(out), look.want) {
			t.Errorf("kubectl %s does not show %s: %v\n%s", look.args, look.want, err, out)
		}
	}

	d.Interrupt()
}
