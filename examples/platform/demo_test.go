package platform_test

import (
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/action"
	release "helm.sh/helm/v4/pkg/release/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/operatorkit/operatorkit/examples/internal/demotest"
	"github.com/operatorkit/operatorkit/operator/operatortest"
)

// maxLines is how many lines the story may have.
const maxLines = 69

// TestTheStory runs the demo as "make run" does: what it tells and what the clusters show afterwards has to be the same.
func TestTheStory(t *testing.T) {
	d := demotest.Start(t)
	showsWhatIsThere(t, d.Kubeconfig)
	stderr := d.Interrupt()
	isTold(t, d.Story())
	for line := range strings.Lines(stderr) {
		// Slow machines have to wait for their control planes, and that is said.
		if !strings.HasPrefix(line, "operatortest: ") {
			t.Errorf("something went wrong on the way: %s", line)
		}
	}
}

// isTold checks what the story says.
func isTold(t *testing.T, story string) {
	t.Helper()
	for _, want := range []string{
		// What is going to be done is told before it is.
		`(?s)HelmRelease platform/certificates: upgrade\n.*\+ data.renewBefore: "720h"\n.*✓ certificates 1.1.0`,
		// The layers come up on both clusters, and the upgrade takes its steps.
		`✓ certificates 1.0.0 +eu after +\d+\.\ds +us after +\d+\.\ds\n +✓ policies 1.0.0 `,
		`(?s)✓ gateway 2.0.0 .*✓ dashboards 1.0.0 .*✓ shop 3.0.0 `,
		// Values are a template, a release of Helm's is taken over as it is, and what policies leaves to the clusters stays.
		`✓ one value for all clusters: shop\.\{\{ \.Cluster\.metadata\.name \}\}\.example\.com `,
		`(?s)HelmRelease web/docs: taken over as it is\n.*Deployment web/docs: taken over as it is\n.*✓ eu: docs is still revision 1`,
		`✓ us: the quota allows 20 services again, and 200 pods still`,
		`(?s)✓ certificates 1.1.0 .*✓ certificates 1.2.0 .*✓ no other release was touched`,
		// The broken version is held back with what depends on it, until it is repaired.
		`platform/gateway: 2.1.0 failed: .*90900`, `web/shop waits for platform/gateway \(on platform/eu, platform/us\)`,
		`✓ gateway 2.0.0 serves on, shop and docs are untouched`,
		`(?s)✓ gateway 2.1.1 .*✓ shop 3.1.0 .*✓ docs 3.1.0 `,
		`✓ eu: shop leads to where it should`, `✓ us: docs is there again`,
		`✓ docs is gone .*\n +✓ dashboards is gone`,
		`helm list on eu: certificates 1.2.0 \(revision 3, deployed\), gateway 2.1.1 .*, shop 3.1.0`,
		`watch it at +http://127.0.0.1:\d+/\n`, `everything has converged; the operator goes on until Ctrl-C`,
	} {
		if !regexp.MustCompile(want).MatchString(story) {
			t.Errorf("the story lacks %s", want)
		}
	}
	if lines := strings.Count(story, "\n"); lines > maxLines {
		t.Errorf("the story has %d lines, which is more than %d", lines, maxLines)
	}
	if t.Failed() {
		t.Logf("the story:\n%s", story)
	}
}

// showsWhatIsThere looks at the clusters as people do: with "helm list", and with "kubectl get" for the rest.
func showsWhatIsThere(t *testing.T, kubeconfig string) {
	t.Helper()
	for _, cluster := range []string{"eu", "us"} {
		want := "platform/certificates 1.2.0 deployed, platform/gateway 2.1.1 deployed, web/shop 3.1.0 deployed"
		if got := releases(t, kubeconfig, cluster); got != want {
			t.Errorf("helm list on %s shows %s, want %s", cluster, got, want)
		}
	}
	kubectl, err := operatortest.Binary(t.Context(), operatortest.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for _, look := range []struct{ args, want string }{
		{"-n platform get clusterdeployments -o name", "clusterdeployment.services.operatorkit.io/eu"},
		{"--context eu -n web get services,ingresses -o name", "ingress.networking.k8s.io/shop"},
		{"--context us -n web get resourcequotas,networkpolicies -o name", "networkpolicy.networking.k8s.io/only-through-the-gateway"},
		{"--context us -n platform get certificates.platform.example.com -o name", "certificate.platform.example.com/gateway"},
	} {
		get := exec.CommandContext(t.Context(), kubectl, append([]string{"kubectl", "--kubeconfig", kubeconfig}, strings.Fields(look.args)...)...)
		out, err := get.CombinedOutput()
		if err != nil || !strings.Contains(string(out), look.want) {
			t.Errorf("kubectl %s does not show %s: %v\n%s", look.args, look.want, err, out)
		}
	}
}

// releases returns what "helm list -A" shows on a cluster.
func releases(t *testing.T, kubeconfig, cluster string) string {
	t.Helper()
	flags := genericclioptions.NewConfigFlags(false)
	flags.KubeConfig, flags.Context = &kubeconfig, &cluster
	config := action.NewConfiguration()
	if err := config.Init(flags, "", "secret"); err != nil {
		t.Fatal(err)
	}
	list := action.NewList(config)
	list.AllNamespaces = true
	found, err := list.Run()
	if err != nil {
		t.Fatal(err)
	}
	all := make([]string, len(found))
	for i, f := range found {
		r := f.(*release.Release)
		all[i] = fmt.Sprintf("%s/%s %s %s", r.Namespace, r.Name, r.Chart.Metadata.Version, r.Info.Status)
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}
