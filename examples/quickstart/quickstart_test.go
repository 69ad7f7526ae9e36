package quickstart_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/examples/quickstart"
	"github.com/operatorkit/operatorkit/examples/quickstart/v1alpha1"
	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/command"
	"github.com/operatorkit/operatorkit/operator/command/commandtest"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/resource/objectresource"
)

func newScheme(t testing.TB) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	return scheme
}

func site(name, version, text string) *v1alpha1.Website {
	return &v1alpha1.Website{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1alpha1.VersionLabel: version}},
		Spec:       v1alpha1.WebsiteSpec{Title: "The " + name, Text: text},
	}
}

// says is a condition: the page of a site says a text, and its service exists.
func says(name, text string) operatortest.Step {
	return func(ctx context.Context, user client.Client, namespace string) error {
		page := &corev1.ConfigMap{}
		if err := user.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name + "-page"}, page); err != nil {
			return err
		}
		if !strings.Contains(page.Data["index.html"], text) {
			return fmt.Errorf("the page says %q", page.Data["index.html"])
		}
		return user.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &corev1.Service{})
	}
}

func patch(name, document string) operatortest.Step {
	return func(ctx context.Context, user client.Client, namespace string) error {
		obj := &v1alpha1.Website{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		return user.Patch(ctx, obj, client.RawPatch("application/merge-patch+json", []byte(document)))
	}
}

func TestQuickstartSurvivesACrashAtEveryWrite(t *testing.T) {
	kube := operatortest.Start(t)
	crds, err := operator.ReadCRDs(v1alpha1.CRDs)
	if err != nil {
		t.Fatal(err)
	}
	kube.InstallCRDs(t, crds...)
	scheme := newScheme(t)
	operatortest.BreakAtEveryWrite(t, operatortest.Scenario{
		Name:   "quickstart",
		Scheme: scheme,
		Config: kube.RESTConfig(),
		Start:  commandtest.Start(quickstart.Config),
		Phases: []operatortest.Phase{
			{Name: "create", Do: operatortest.Create(site("home", "v1", "hello"), site("blog", "v2", "post")),
				Until: operatortest.All(says("home", "<p>hello"), says("blog", "<main>"))},
			{Name: "change", Do: patch("home", `{"spec":{"text":"bye"}}`), Until: says("home", "<p>bye")},
			{Name: "next version", Do: patch("home", `{"metadata":{"labels":{"`+v1alpha1.VersionLabel+`":"v2"}}}`), Until: says("home", "<main>")},
			{Name: "delete", Do: operatortest.Delete(site("home", "", "")), Until: operatortest.Gone(site("home", "", ""),
				&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "home-page"}}, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "home"}})},
		},
		Objects:   []client.Object{&v1alpha1.Website{}, &corev1.ConfigMap{}, &corev1.Service{}},
		Normalize: objectresource.Normalize,
	})
}

func TestPageEscapesWhatItsOwnerWrote(t *testing.T) {
	kube := operatortest.Start(t)
	namespace := kube.Namespace(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	var stderr bytes.Buffer
	config := quickstart.Config
	config.KeepGlobalLoggers = true
	go func() {
		args := []string{"run", "--kubeconfig", kube.Kubeconfig(), "--namespace", namespace, "--listen-address", "", "--inspector-address", ""}
		ended <- command.Execute(ctx, config, args, io.Discard, &stderr)
	}()
	defer func() {
		cancel()
		if code := <-ended; code != command.ExitOK {
			t.Errorf("the operator ended with exit code %d: %s", code, &stderr)
		}
	}()

	user := operatortest.NewClient(t, kube.RESTConfig(), newScheme(t))
	evil := site("evil", "v1", `<script>alert("hi")</script>`)
	evil.Namespace = namespace
	operatortest.Eventually(t, "the operator serves its API", func() error { return user.Create(ctx, evil.DeepCopy()) })
	operatortest.Eventually(t, "the page is there", func() error { return says("evil", "&lt;script&gt;")(ctx, user, namespace) })
}
