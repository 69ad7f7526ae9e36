package command_test

import (
	"context"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/operator/command"
	"github.com/operatorkit/operatorkit/operator/inspector"
	"github.com/operatorkit/operatorkit/operator/logging"
	"github.com/operatorkit/operatorkit/operator/operatortest"
)

// holder lets those look who have a token.
type holder struct{ token string }

func (h holder) Authorize(r *http.Request, _ string) error {
	if r.Header.Get("Authorization") != "Bearer "+h.token {
		return fmt.Errorf("%w: the token is %q", inspector.ErrUnauthenticated, r.Header.Get("Authorization"))
	}
	return nil
}

// inspectorOf returns a running inspector of a framework that has an object of the same name in many namespaces.
func inspectorOf(t *testing.T, authorizer inspector.Authorizer, namespaces int) *inspector.Inspector {
	t.Helper()
	logger, err := logging.New(logging.Config{Writer: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	page, err := inspector.New(inspector.Config{Name: "nursery", Logger: logger, Authorizer: authorizer})
	if err != nil {
		t.Fatal(err)
	}
	source := informer.NewPush("plots")
	for n := range namespaces {
		o := &unstructured.Unstructured{Object: map[string]any{"kind": "Plot"}}
		o.SetNamespace(fmt.Sprintf("garden-%04d", n))
		o.SetName("one")
		if err := source.Update(o); err != nil {
			t.Fatal(err)
		}
	}
	if err := source.Take(watch.Event{Type: "ODD"}); err == nil {
		t.Fatal("an event of an unknown type is taken")
	}
	task := &noTask{}
	f, err := framework.New(framework.Config{Name: "plots", Source: source, Logger: logger, Observer: page, Resources: []framework.Resource{task}})
	if err != nil {
		t.Fatal(err)
	}
	page.Watch(f)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := f.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() { cancel(); running.Wait() })
	operatortest.Eventually(t, "all objects are reconciled", func() bool {
		s := f.Status()
		return task.ensured.Load() >= int32(namespaces) && s.Fresh+s.Backlog+s.Active == 0
	})
	return page
}

// noTask is a resource that does nothing but count.
type noTask struct{ ensured atomic.Int32 }

func (*noTask) Name() string { return "idle" }

func (t *noTask) EnsureCreated(context.Context, any) error {
	t.ensured.Add(1)
	return nil
}

func (*noTask) EnsureDeleted(context.Context, any) error { return nil }

func TestExplainFindsAnObjectAmongManyOfItsName(t *testing.T) {
	const namespaces = 1100
	server := httptest.NewServer(inspectorOf(t, nil, namespaces))
	defer server.Close()
	for _, n := range []int{0, 60, namespaces - 1} {
		namespace := fmt.Sprintf("garden-%04d", n)
		code, stdout, stderr := explain(t, "one", "-n", namespace, "--inspector-address", strings.TrimPrefix(server.URL, "http://"))
		if code != command.ExitOK || !strings.HasPrefix(stdout, "Plot "+namespace+"/one (framework plots): ") {
			t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
		}
	}
}

// An object may be unknown because its source lacks something.
func TestExplainOfAnUnknownObjectTellsWhatSourcesLack(t *testing.T) {
	server := httptest.NewServer(inspectorOf(t, nil, 1))
	defer server.Close()
	code, _, stderr := explain(t, "two", "-n", "garden-0000", "--inspector-address", strings.TrimPrefix(server.URL, "http://"))
	if want := "source plots has got what it can't use: "; code != command.ExitFailure || !strings.Contains(stderr, want) || !strings.Contains(stderr, `"ODD"`) {
		t.Errorf("exit code %d, want %q\n%s", code, want, stderr)
	}
}

func TestExplainSendsATokenWhereItIsSafe(t *testing.T) {
	page := inspectorOf(t, holder{"secret"}, 1)
	plain, safe := httptest.NewServer(page), httptest.NewTLSServer(page)
	defer plain.Close()
	defer safe.Close()
	folder := t.TempDir()
	authorities, empty := filepath.Join(folder, "ca.crt"), filepath.Join(folder, "empty")
	write := func(file string, data []byte) {
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(authorities, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: safe.Certificate().Raw}))
	write(empty, nil)
	kubeconfig := filepath.Join(folder, "kubeconfig")
	write(kubeconfig, []byte(`{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, user: u}}],
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}], users: [{name: u, user: {token: secret}}]}`))

	host := func(server *httptest.Server) string { _, host, _ := strings.Cut(server.URL, "://"); return host }
	for name, test := range map[string]struct {
		args []string
		code int
		says string
	}{
		"the token of the flag":                    {[]string{"--inspector-address", host(plain), "--token", "secret"}, command.ExitOK, ""},
		"that one by TLS":                          {[]string{"--inspector-address", safe.URL, "--inspector-ca-file", authorities, "--token", "secret"}, command.ExitOK, ""},
		"the token of the kubeconfig":              {[]string{"--inspector-address", safe.URL, "--inspector-ca-file", authorities, "--kubeconfig", kubeconfig}, command.ExitOK, ""},
		"the flag before the kubeconfig":           {[]string{"--inspector-address", safe.URL, "--inspector-ca-file", authorities, "--kubeconfig", kubeconfig, "--token", "x"}, command.ExitFailure, `the token is \"Bearer x\"`},
		"the kubeconfig's does not go in the open": {[]string{"--inspector-address", host(plain), "--kubeconfig", kubeconfig}, command.ExitFailure, `the token is \"\"`},
		"nor to a stranger":                        {[]string{"--inspector-address", safe.URL, "--kubeconfig", kubeconfig}, command.ExitFailure, "certificate signed by unknown authority"},
		"no token":                                 {[]string{"--inspector-address", host(plain)}, command.ExitFailure, "give a --token, or a kubeconfig with one and an --inspector-address with https://"},
		"no authority":                             {[]string{"--inspector-address", safe.URL, "--inspector-ca-file", empty}, command.ExitUsage, "--inspector-ca-file: there is no certificate in " + empty},
		"another scheme":                           {[]string{"--inspector-address", "ftp://" + host(plain)}, command.ExitUsage, "--inspector-address: it must begin with https://"},
		"a password in the address":                {[]string{"--inspector-address", "https://me:hunter2@" + host(safe)}, command.ExitUsage, "it must have no user or password in it"},
	} {
		t.Run(name, func(t *testing.T) {
			code, stdout, stderr := explain(t, append([]string{"one", "-n", "garden-0000"}, test.args...)...)
			if code != test.code || !strings.Contains(stderr, test.says) || strings.Contains(stderr, "hunter2") {
				t.Errorf("exit code %d, want %d; want %q\n%s%s", code, test.code, test.says, stdout, stderr)
			}
		})
	}
}
