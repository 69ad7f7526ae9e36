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
	"k8s.io/apimachinery/pkg/api/meta"
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
	"github.com/operatorkit/operatorkit/resource/statusresource"
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
func says(name, text string) operatortest.Step { return saysBeside("", name, text) }

// bothSay is a condition: the operator and its neighbour have both done their work.
func bothSay(name, text string) operatortest.Step {
	return operatortest.All(says(name, text), saysBeside(neighbour, name, text))
}

// saysBeside is says for a copy of the operator, by the suffix of its children.
func saysBeside(suffix, name, text string) operatortest.Step {
	return func(ctx context.Context, user client.Client, namespace string) error {
		page := &corev1.ConfigMap{}
		if err := user.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name + "-page" + suffix}, page); err != nil {
			return err
		}
		if !strings.Contains(page.Data["index.html"], text) {
			return fmt.Errorf("the page says %q", page.Data["index.html"])
		}
		return user.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name + suffix}, &corev1.Service{})
	}
}

// ready is a condition: the status says of the newest generation of a site that it is served.
func ready(name string) operatortest.Step {
	return func(ctx context.Context, user client.Client, namespace string) error {
		site := &v1alpha1.Website{}
		if err := user.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, site); err != nil {
			return err
		}
		is := meta.FindStatusCondition(site.Status.Conditions, statusresource.ConditionReady)
		if is == nil || is.Status != metav1.ConditionTrue || is.ObservedGeneration != site.Generation || site.Status.ObservedGeneration != site.Generation {
			return fmt.Errorf("the status of generation %d is %+v", site.Generation, site.Status)
		}
		return nil
	}
}

// neighbour is the suffix of the children of the operator's neighbour.
const neighbour = "-next-door"

func patch(name, document string) operatortest.Step {
	return func(ctx context.Context, user client.Client, namespace string) error {
		obj := &v1alpha1.Website{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		return user.Patch(ctx, obj, client.RawPatch("application/merge-patch+json", []byte(document)))
	}
}

func TestQuickstartSurvivesACrashAtEveryWrite(t *testing.T) {
	operatortest.BreakAtEveryWrite(t, lifeOfSites(t))
}

func TestQuickstartSurvivesAServerThatLags(t *testing.T) {
	life := lifeOfSites(t)
	life.Phases = append(life.Phases, operatortest.Phase{Name: "again", Do: operatortest.Create(site("home", "v1", "again")),
		Until: operatortest.All(bothSay("home", "<p>again"), ready("home"))})
	operatortest.LagAtEveryWrite(t, life)
}

func TestQuickstartIsQuietWhenItHasNothingToDo(t *testing.T) {
	life := lifeOfSites(t)
	life.Neighbour = nil
	for i := range life.Phases {
		life.Phases[i].Until = alone[life.Phases[i].Name]
	}
	operatortest.Quiet(t, life)
}

// alone are the conditions of the phases for an operator without a neighbour.
var alone = map[string]operatortest.Step{
	"create":       operatortest.All(says("home", "<p>hello"), says("blog", "<main>"), ready("home"), ready("blog")),
	"change":       operatortest.All(says("home", "<p>bye"), ready("home")),
	"next version": says("home", "<main>"),
	"delete":       operatortest.Gone(site("home", "", "")),
}

// lifeOfSites is what happens to two Websites, of which one gets another text and version, and goes.
func lifeOfSites(t *testing.T) operatortest.Scenario {
	t.Helper()
	kube := operatortest.Start(t)
	crds, err := operator.ReadCRDs(v1alpha1.CRDs)
	if err != nil {
		t.Fatal(err)
	}
	kube.InstallCRDs(t, crds...)
	return operatortest.Scenario{
		Name:   "quickstart",
		Scheme: newScheme(t),
		Config: kube.RESTConfig(),
		Start:  commandtest.Start(quickstart.Config),
		// It is there from the beginning to the end, and so has the same Websites.
		Neighbour: quickstart.RunCopy("neighbour", neighbour),
		Phases: []operatortest.Phase{
			{Name: "create", Do: operatortest.Create(site("home", "v1", "hello"), site("blog", "v2", "post")),
				Until: operatortest.All(bothSay("home", "<p>hello"), bothSay("blog", "<main>"), ready("home"), ready("blog"))},
			{Name: "change", Do: patch("home", `{"spec":{"text":"bye"}}`), Until: operatortest.All(bothSay("home", "<p>bye"), ready("home"))},
			{Name: "next version", Do: patch("home", `{"metadata":{"labels":{"`+v1alpha1.VersionLabel+`":"v2"}}}`), Until: bothSay("home", "<main>")},
			{Name: "delete", Do: operatortest.Delete(site("home", "", "")), Until: operatortest.Gone(site("home", "", ""),
				&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "home-page"}}, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "home"}},
				&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "home-page" + neighbour}}, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "home" + neighbour}})},
		},
		// The order of the two operators' conditions in a status is that in which they came; ready looks at those.
		Objects:   []client.Object{&corev1.ConfigMap{}, &corev1.Service{}},
		Normalize: objectresource.Normalize,
	}
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
