package quickstart_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/examples/quickstart"
	"github.com/operatorkit/operatorkit/examples/quickstart/v1alpha1"
	"github.com/operatorkit/operatorkit/operator/command/commandtest"
	"github.com/operatorkit/operatorkit/operator/operatortest"
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
func ready(name string) operatortest.Step { return operatortest.Ready(site(name, "", "")) }

// neighbour is the suffix of the children of the operator's neighbour.
const neighbour = "-next-door"

func patch(name, document string) operatortest.Step {
	return operatortest.Patch(site(name, "", ""), document)
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
	operatortest.Quiet(t, lifeAlone(t))
}

func TestQuickstartHasExactlyTheRightsThatItNeeds(t *testing.T) {
	operatortest.Rights(t, lifeAlone(t))
}

// lifeAlone is what happens to two Websites without a neighbour.
func lifeAlone(t *testing.T) operatortest.Scenario {
	t.Helper()
	life := lifeOfSites(t)
	life.Neighbour = nil
	for i := range life.Phases {
		life.Phases[i].Until = alone[life.Phases[i].Name]
	}
	return life
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
	life := commandtest.Scenario(t, quickstart.Config)
	life.Parallel = 4
	// It is there from the beginning to the end, and so has the same Websites.
	life.Neighbour = quickstart.RunCopy("neighbour", neighbour)
	life.Phases = []operatortest.Phase{
		{Name: "create", Do: operatortest.Create(site("home", "v1", "hello"), site("blog", "v2", "post")),
			Until: operatortest.All(bothSay("home", "<p>hello"), bothSay("blog", "<main>"), ready("home"), ready("blog"))},
		{Name: "change", Do: patch("home", `{"spec":{"text":"bye"}}`), Until: operatortest.All(bothSay("home", "<p>bye"), ready("home"))},
		{Name: "next version", Do: patch("home", `{"metadata":{"labels":{"`+v1alpha1.VersionLabel+`":"v2"}}}`), Until: bothSay("home", "<main>")},
		{Name: "delete", Do: operatortest.Delete(site("home", "", "")), Until: operatortest.Gone(site("home", "", ""),
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "home-page"}}, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "home"}},
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "home-page" + neighbour}}, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "home" + neighbour}})},
	}
	// The order of the two operators' conditions in a status is that in which they came; Ready looks at those.
	life.Objects = []client.Object{&corev1.ConfigMap{}, &corev1.Service{}}
	return life
}

func TestPageEscapesWhatItsOwnerWrote(t *testing.T) {
	o := commandtest.Operator(t, quickstart.Config)
	evil := site("evil", "v1", `<script>alert("hi")</script>`)
	evil.Namespace = o.Namespace
	if err := o.User.Create(t.Context(), evil); err != nil {
		t.Fatal(err)
	}
	operatortest.Eventually(t, "the page is there", func() error { return says("evil", "&lt;script&gt;")(t.Context(), o.User, o.Namespace) })
}
