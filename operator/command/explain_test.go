package command_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/operator/command"
	"github.com/operatorkit/operatorkit/operator/inspector"
	"github.com/operatorkit/operatorkit/operator/operatortest"
)

// log is what a command logs while it runs.
type log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// inspected runs the nursery in a namespace until the returned function is called, and returns the address of its inspector.
func inspected(t *testing.T, instance *operatortest.Instance, namespace string) (address string, stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	stderr := &log{}
	go func() {
		args := []string{"run", "--kubeconfig", instance.Kubeconfig(), "--namespace", namespace, "--listen-address", "", "--inspector-address", "127.0.0.1:0", "--log-format", "text"}
		ended <- command.Execute(ctx, nursery(), args, io.Discard, stderr)
	}()
	pattern := regexp.MustCompile(`serving the inspector .*address=(\S+)`)
	operatortest.Eventually(t, "the log tells the address of the inspector", func() error {
		found := pattern.FindStringSubmatch(stderr.String())
		if found == nil {
			return fmt.Errorf("the log is %s", stderr)
		}
		address = found[1]
		return nil
	})
	return address, func() {
		t.Helper()
		cancel()
		if code := <-ended; code != command.ExitOK {
			t.Errorf("exit code %d\n%s", code, stderr)
		}
	}
}

// explain runs "explain" and returns what it wrote.
func explain(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	code = command.Execute(t.Context(), nursery(), append([]string{"explain"}, args...), &out, &err)
	return code, out.String(), err.String()
}

func TestExplainTellsWhatTheOperatorDidForAnObjectAndWhy(t *testing.T) {
	collects := httptest.NewServer(&collector{})
	t.Cleanup(collects.Close)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collects.URL)
	instance, user, namespace := startedNursery(t)
	address, stop := inspected(t, instance, namespace)
	defer stop()
	one := plot(namespace, "one", 7)
	if err := user.Create(t.Context(), one); err != nil {
		t.Fatal(err)
	}
	sign := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "one-sign"}}
	operatortest.Eventually(t, "the sign is there", func() error {
		return user.Get(t.Context(), client.ObjectKeyFromObject(sign), sign)
	})
	if err := user.Patch(t.Context(), one, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"size":8}}`))); err != nil {
		t.Fatal(err)
	}

	var text string
	operatortest.Eventually(t, "it tells of the change", func() error {
		var code int
		var stderr string
		code, text, stderr = explain(t, "one", "-n", namespace, "--inspector-address", address)
		if code == command.ExitOK && strings.Contains(text, `data.text: "7 of grass" -> "8 of grass"`) {
			return nil
		}
		return fmt.Errorf("exit code %d\n%s%s", code, text, stderr)
	})
	for _, want := range []string{
		`(?m)^Plot ` + namespace + `/one \(framework signs\): fine$`,
		`(?m)^\d\d:\d\d:\d\d  update: success in [0-9.]+m?s$`,
		`(?m)^  trace: [0-9a-f]{32}$`,
		`(?m)^  because of: change from plots.command.test.operatorkit.io as unstructured \((added|updated)\)$`,
		`(?ms)^  signs \([0-9.]+m?s\)\n    \+ ConfigMap ` + namespace + `/one-sign\n.*^    ~ ConfigMap ` + namespace + `/one-sign$`,
	} {
		if !regexp.MustCompile(want).MatchString(text) {
			t.Errorf("it lacks %s:\n%s", want, text)
		}
	}

	_, text, _ = explain(t, "pt", "one", "-n", namespace, "--inspector-address", address, "-o", "json", "--last", "1")
	var object inspector.Object
	if err := json.Unmarshal([]byte(text), &object); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if object.Name != "one" || object.Object.Kind != "Plot" || len(object.Reconciliations) != 1 {
		t.Errorf("the JSON is of %s with %d reconciliations", object.Object, len(object.Reconciliations))
	}

	if err := user.Patch(t.Context(), one, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"seen":"yes"}}}`))); err != nil {
		t.Fatal(err)
	}
	operatortest.Eventually(t, "a reconciliation has nothing to do", func() error {
		if _, text, _ = explain(t, "one", "-n", namespace, "--inspector-address", address); strings.Contains(text, ": nothing to do") {
			return nil
		}
		return errors.New(text)
	})
	if _, text, _ = explain(t, "one", "-n", namespace, "--inspector-address", address, "--changes"); strings.Contains(text, "nothing to do") || !strings.Contains(text, `"8 of grass"`) {
		t.Errorf("with --changes it says:\n%s", text)
	}
}

func TestExplainSaysWhatIsAmiss(t *testing.T) {
	instance, _, namespace := startedNursery(t)
	address, stop := inspected(t, instance, namespace)
	defer stop()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := closed.Addr().String()
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	stranger := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) }))
	defer stranger.Close()
	foreign := strings.TrimPrefix(stranger.URL, "http://")

	for name, test := range map[string]struct {
		args []string
		code int
		says string
	}{
		"there is no such object": {[]string{"two", "-n", namespace, "--inspector-address", address}, command.ExitFailure,
			`nursery: the operator at ` + address + ` knows no "two" in namespace "` + namespace + `": are KIND and --namespace right?` + "\n"},
		"nobody listens": {[]string{"one", "-n", namespace, "--inspector-address", nobody}, command.ExitFailure,
			"nursery: ask the inspector at " + nobody + ": dial tcp " + nobody + ": connect: connection refused: is the operator running there, with its --inspector-address?\n"},
		"it is something else": {[]string{"one", "-n", namespace, "--inspector-address", foreign}, command.ExitFailure,
			"nursery: ask the inspector at " + foreign + ": it does not answer as an inspector does: "},
		"there is no name": {nil, command.ExitUsage, "nursery: accepts between 1 and 2 arg(s), received 0\n"},
		"nothing is asked": {[]string{"one", "--last", "0"}, command.ExitUsage, "nursery: --last must be 1 at least\n"},
	} {
		t.Run(name, func(t *testing.T) {
			code, stdout, stderr := explain(t, test.args...)
			if diff := cmp.Diff(test.code, code); diff != "" || !strings.HasPrefix(stderr, test.says) || stdout != "" {
				t.Errorf("exit code %d, want %d; stderr %q, want %q; stdout %q", code, test.code, stderr, test.says, stdout)
			}
		})
	}
}

func TestExplainTellsThatNoResourceSetHandlesAnObject(t *testing.T) {
	t.Setenv("NURSERY", "labels")
	instance, user, namespace := startedNursery(t)
	address, stop := inspected(t, instance, namespace)
	defer stop()
	if err := user.Create(t.Context(), plot(namespace, "one", 7)); err != nil {
		t.Fatal(err)
	}
	want := regexp.MustCompile(`(?s)^Plot\S* \S+/one \(framework signs\): left alone\n.*\n  no resource set handles it\n`)
	operatortest.Eventually(t, "it is explained", func() error {
		code, stdout, stderr := explain(t, "plot", "one", "-n", namespace, "--inspector-address", address)
		if code != command.ExitOK || !want.MatchString(stdout) {
			return fmt.Errorf("exit code %d\n%s%s", code, stdout, stderr)
		}
		return nil
	})
}

func TestExplainTellsOfAChangeThatIsUndoneAgainAndAgain(t *testing.T) {
	instance, user, namespace := startedNursery(t)
	address, stop := inspected(t, instance, namespace)
	defer stop()
	if err := user.Create(t.Context(), plot(namespace, "one", 7)); err != nil {
		t.Fatal(err)
	}
	sign := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "one-sign"}}
	operatortest.Eventually(t, "the sign is there", func() error {
		return user.Get(t.Context(), client.ObjectKeyFromObject(sign), sign)
	})
	line := regexp.MustCompile(`(?m)^  the change is undone again and again: update of ConfigMap ` + namespace + `/one-sign \(data\.text\): ` +
		`also written by "vandal" \(\S+\); 5 times since \d\d:\d\d:\d\d, next try in (1m)?\d+s, at \d\d:\d\d:\d\d$`)
	tries := 0
	operatortest.Eventually(t, "it tells of the change", func() error {
		undo := client.RawPatch("application/merge-patch+json", []byte(`{"data":{"text":"nothing"}}`))
		if err := user.Patch(t.Context(), sign.DeepCopy(), undo, client.FieldOwner("vandal")); err != nil {
			return err
		}
		// The nursery does not watch its signs.
		tries++
		label := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"metadata":{"labels":{"try":"%d"}}}`, tries))
		if err := user.Patch(t.Context(), plot(namespace, "one", 7), label); err != nil {
			return err
		}
		if _, text, stderr := explain(t, "one", "-n", namespace, "--inspector-address", address); !line.MatchString(text) {
			return fmt.Errorf("%s%s", text, stderr)
		}
		return nil
	})
}
