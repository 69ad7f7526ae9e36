package operatortest_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/operatorkit/operatorkit/operator/operatortest"
)

func TestTheControlPlaneOfTheEnvironmentIsUsed(t *testing.T) {
	kube := operatortest.Start(t)
	const sharing = "^TestTestsShareAControlPlaneEachInItsNamespace$"
	for _, test := range []struct {
		kubeconfig, want string
	}{
		{kubeconfig: kube.Kubeconfig(), want: "--- PASS: TestTestsShare"},
		{kubeconfig: "/no/kubeconfig", want: "load kubeconfig /no/kubeconfig"},
	} {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run="+sharing, "-test.v") //nolint:gosec // this very program
		cmd.Env = append(os.Environ(),
			operatortest.KubeconfigVariable+"="+test.kubeconfig,
			operatortest.BinaryVariable+"=/no/binary", // it must not try to start one
		)
		output, _ := cmd.CombinedOutput()
		if !strings.Contains(string(output), test.want) {
			t.Errorf("with kubeconfig %s:\n%s\nwant %s", test.kubeconfig, output, test.want)
		}
	}
}
