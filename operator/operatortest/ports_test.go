package operatortest_test

import (
	"context"
	"net"
	"testing"

	"github.com/operatorkit/operatorkit/operator/operatortest"
)

func TestAPortThatSomebodyElseTookIsReplaced(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	tries := 0
	kube, err := operatortest.RunOnPorts(t.Context(), operatortest.Config{}, func(n int) ([]int, error) {
		ports, err := operatortest.FreePorts(n)
		if tries < n && err == nil { // each part is unlucky once
			ports[tries] = taken.Addr().(*net.TCPAddr).Port
		}
		tries++
		return ports, err
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = kube.Stop(context.Background()) }()
	if want := 4; tries < want { // more when somebody else takes one
		t.Errorf("ports were chosen %d times, want %d at least", tries, want)
	}
	createConfigMap(t, newClient(t, kube.RESTConfig()), "default", "settings")
}

func TestFreePortsDiffer(t *testing.T) {
	ports, err := operatortest.FreePorts(20)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[int]bool{}
	for _, port := range ports {
		if seen[port] {
			t.Errorf("%d twice in %v", port, ports)
		}
		seen[port] = true
	}
}
