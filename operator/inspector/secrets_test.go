package inspector_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/giantswarm/micrologger"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/inspector"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/resource/secretresource"
)

// R14: values of Secrets are nowhere but in the Secrets, neither plain nor encoded: not in logs, pages, plans, the JSON
// interface, events and metrics, whether the writing succeeds, fails or is only planned.
func TestR14NoValueOfASecretIsShown(t *testing.T) {
	const first, second, third, fourth = "hunter2-first-value", "hunter2-second-value", "hunter2-third-value", "hunter2-fourth-value"
	c := newCluster(t)
	log := &lockedBuffer{}
	logger, err := micrologger.New(micrologger.Config{IOWriter: log})
	if err != nil {
		t.Fatal(err)
	}
	deps, err := operator.NewDependencies(operator.DependenciesConfig{
		Name: "o", RESTConfig: c.config, Scheme: scheme.Scheme, Logger: logger, Namespaces: []string{c.namespace}, InspectorAddress: "127.0.0.1:0",
	})
	if err != nil {
		t.Fatal(err)
	}
	defer deps.Close()
	secrets, err := secretresource.New(secretresource.Config[*corev1.ConfigMap]{
		Name: "secrets", Client: deps.Client, Logger: logger,
		Desired: func(_ context.Context, site *corev1.ConfigMap) ([]*corev1.Secret, error) {
			s := &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Name: site.Name}, Data: map[string][]byte{"password": []byte(site.Data["password"])},
				StringData: map[string]string{"again": site.Data["password"]},
			}
			if site.Data["type"] == "tls" {
				s.Type = corev1.SecretTypeTLS // without a certificate in it, the API server refuses it
			}
			return []*corev1.Secret{s}, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	sites, err := deps.NewSource(&corev1.ConfigMap{})
	if err != nil {
		t.Fatal(err)
	}
	// quotes is an author who says too much of what the clients and the resources read.
	quotes := &callback{name: "quotes", call: func(ctx context.Context, obj any) error {
		site := obj.(*corev1.ConfigMap)
		if site.Data["type"] != "read" {
			return nil
		}
		clientset, err := kubernetes.NewForConfig(deps.RESTConfig)
		if err != nil {
			return err
		}
		if _, err := clientset.CoreV1().Secrets(c.namespace).Get(ctx, "elsewhere", metav1.GetOptions{}); err != nil {
			return err
		}
		var s corev1.Secret
		if err := deps.Client.Get(ctx, client.ObjectKey{Namespace: c.namespace, Name: "own"}, &s); err != nil {
			return err
		}
		framework.Logger(ctx, logger).Log("level", "info", "message", "log in", "secret", &s, "password", third)
		logger.LogCtx(ctx, "level", "info", "message", "quoted")
		if err := deps.Client.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: "Bad_Name"}, StringData: map[string]string{"x": fourth}}); err == nil {
			return errors.New("a bad name is taken")
		}
		return fmt.Errorf("login with %s, %s and %s, of %v", site.Data["password"], third, base64.StdEncoding.EncodeToString([]byte(fourth)), &s)
	}}
	for name, value := range map[string]string{"own": second, "elsewhere": third} {
		s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: name}, StringData: map[string]string{"password": value}}
		if err := deps.Client.Create(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	f, err := deps.NewFramework(framework.Config{Name: kind, Source: sites, Resources: []framework.Resource{secrets, quotes}})
	if err != nil {
		t.Fatal(err)
	}
	o, err := operator.New(operator.Config{Name: "o", Logger: logger, Registry: deps.Registry, Frameworks: []*framework.Framework{f}, Inspector: deps.Inspector})
	if err != nil {
		t.Fatal(err)
	}
	w := serve(t, o)

	put := func(name, password, secretType string) {
		t.Helper()
		s := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: name}, Data: map[string]string{"password": password, "type": secretType}}
		err := deps.Client.Create(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
	}
	change := func(name, password string) {
		t.Helper()
		var s corev1.ConfigMap
		if err := deps.Client.Get(t.Context(), client.ObjectKey{Namespace: c.namespace, Name: name}, &s); err != nil {
			t.Fatal(err)
		}
		s.Data["password"] = password
		if err := deps.Client.Update(t.Context(), &s); err != nil {
			t.Fatal(err)
		}
	}
	put("good", first, "")
	put("bad", first, "tls")
	put("quoting", first, "read")
	path := func(name string) string {
		return strings.ReplaceAll(objectPath(name), "namespace=default", "namespace="+c.namespace)
	}
	operatortest.Eventually(t, "one secret is written, and the other refused", func() bool {
		return len(w.names("state=fine&name=good")) == 1 && len(w.names("state=failing&name=bad")) == 1 &&
			len(w.names("state=failing&name=quoting")) == 1
	})
	change("good", second)
	operatortest.Eventually(t, "the change is written", func() bool {
		return strings.Contains(w.get("api/v1/"+path("good"), http.StatusOK), `"action":"update"`)
	})

	form := queryOf("good")
	form.Set("namespace", c.namespace)
	shown := map[string]string{
		"overview": w.get("", http.StatusOK), "objects": w.get("objects", http.StatusOK),
		"object": w.get(path("good"), http.StatusOK), "failing object": w.get(path("bad"), http.StatusOK),
		"plan": w.post("object", form, http.StatusOK), "JSON plan": w.post("api/v1/plan", form, http.StatusOK),
		"JSON overview": w.get("api/v1/overview", http.StatusOK), "JSON objects": w.get("api/v1/objects", http.StatusOK),
		"JSON object": w.get("api/v1/"+path("good"), http.StatusOK), "JSON failing object": w.get("api/v1/"+path("bad"), http.StatusOK),
	}
	shown["quoting object"], shown["JSON quoting object"] = w.get(path("quoting"), http.StatusOK), w.get("api/v1/"+path("quoting"), http.StatusOK)
	has(t, shown["quoting object"], "login with (sensitive)")
	form.Set("name", "bad")
	shown["plan of the failing object"] = w.post("object", form, http.StatusOK)
	has(t, shown["object"], "(sensitive, changed)", c.namespace+"/good")
	has(t, shown["plan of the failing object"], "1 to create", "(sensitive)")

	var events corev1.EventList
	operatortest.Eventually(t, "the event is written", func() bool {
		err := deps.Client.List(t.Context(), &events, client.InNamespace(c.namespace))
		return err == nil && len(events.Items) > 0
	})
	shown["events"] = events.String()
	shown["metrics"] = gather(t, deps.Registry)
	shown["log"] = log.String()
	has(t, shown["log"], "reconciliation failed", "login with (sensitive)", "log in")
	for where, text := range shown {
		for _, value := range []string{first, second, third, fourth} {
			encoded := base64.StdEncoding.EncodeToString([]byte(value))
			for _, form := range []string{value, encoded, encoded[:len(encoded)-4], base64.RawURLEncoding.EncodeToString([]byte(value))} {
				// The primary of this test is a ConfigMap that holds the value itself; nothing shows primaries either.
				if strings.Contains(text, form) {
					t.Errorf("the value of a Secret is in %s as %q", where, form)
				}
			}
		}
	}
}

// serve runs an operator and returns a world that asks its inspector.
func serve(t *testing.T, o *operator.Operator) *world {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- o.Run(ctx) }()
	httpClient := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(func() {
		httpClient.CloseIdleConnections()
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	operatortest.Eventually(t, "the inspector is served", func() bool { return o.InspectorAddr() != nil })
	return &world{t: t, url: "http://" + o.InspectorAddr().String(), client: httpClient}
}

// lockedBuffer is a buffer that several goroutines write to.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func gather(t testing.TB, registry *prometheus.Registry) string {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, f := range families {
		b.WriteString(f.String())
	}
	return b.String()
}

var _ framework.Observer = (*inspector.Inspector)(nil)

// callback is a resource made of a function.
type callback struct {
	name string
	call func(ctx context.Context, obj any) error
}

func (c *callback) Name() string                                     { return c.name }
func (c *callback) EnsureCreated(ctx context.Context, obj any) error { return c.call(ctx, obj) }
func (c *callback) EnsureDeleted(context.Context, any) error         { return nil }
