package command_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/command"
	"github.com/operatorkit/operatorkit/operator/inspector"
)

func TestThePageRemembersWhatTheFlagHasMemoryFor(t *testing.T) {
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	writeKubeconfig(t, kubeconfig, "http://127.0.0.1:1")
	const objects, size = 500, 1 << 10
	remembered := func(args ...string) int {
		t.Helper()
		total := -1
		config := idle(func(_ context.Context, deps *operator.Dependencies, config *operator.Config) error {
			deps.Inspector.Watch(config.Frameworks...)
			for n := range objects {
				deps.Inspector.Observe(&framework.Record{
					Framework: "idle", Key: informer.Key{Name: fmt.Sprint("object-", n)}, Outcome: framework.Failed, Error: strings.Repeat("e", size),
				})
			}
			page := httptest.NewServer(deps.Inspector)
			defer page.Close()
			answer, err := http.Get(page.URL + inspector.Path + "api/v1/objects")
			if err != nil {
				return err
			}
			defer func() { _ = answer.Body.Close() }()
			var list inspector.ObjectList
			if err := json.NewDecoder(answer.Body).Decode(&list); err != nil {
				return err
			}
			total = list.Total
			return context.Canceled
		})
		var stderr bytes.Buffer
		code := command.Execute(t.Context(), config, append([]string{"run", "--kubeconfig", kubeconfig}, args...), &stderr, &stderr)
		if want := "idle: configure the operator: context canceled\n"; code != command.ExitFailure || stderr.String() != want {
			t.Errorf("got %d %q, want %q", code, stderr.String(), want)
		}
		return total
	}
	if got := remembered(); got != objects {
		t.Errorf("by default %d of %d objects are remembered", got, objects)
	}
	if got := remembered("--inspector-memory", "100Ki"); got < 20 || got > 100 {
		t.Errorf("of objects of 1 KiB and some %d are remembered in 100 KiB", got)
	}
}
