package helm_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/helm"
)

// done carries out and returns what the API server was asked for: what was done to objects, in a line each, and to those of hooks.
func (k *kit) done(service *carrier.Service, result *carrier.Result) (objects, hooks []string) {
	k.t.Helper()
	before := k.faults.Count()
	k.carryOut(service, result)
	for _, write := range k.faults.Writes()[before:] {
		if isRevision(plan.Object{Name: write.Name}) || write.Status >= http.StatusBadRequest {
			continue
		}
		kind, err := k.user.RESTMapper().KindFor(schema.GroupVersionResource{Group: write.Group, Version: write.Version, Resource: write.Resource})
		if err != nil {
			k.t.Fatal(err)
		}
		action := plan.Update
		switch {
		case write.Method == http.MethodDelete:
			action = plan.Delete
		case write.Status == http.StatusCreated:
			action = plan.Create
		}
		line := string(action) + " " + kind.Kind + " " + write.Name
		if strings.HasSuffix(write.Name, "-hook") {
			hooks = append(hooks, line)
		} else {
			objects = append(objects, line)
		}
	}
	return objects, hooks
}

// objectsIn are the changes of a plan but for that of the release.
func objectsIn(changes []plan.Change) []string {
	return slices.DeleteFunc(summary(changes), func(line string) bool { return strings.Contains(line, " HelmRelease ") })
}

func TestNamespacesDefinitionsAndHooksAreDoneAsPlanned(t *testing.T) {
	k := newKit(t, helm.Config{})
	name, group := k.namespace+"-new", k.namespace+".example.com"
	first := hookChart("1.0.0").with("crds/widget.yaml", definition(group, "first")).with("templates/widget.yaml", widget(group)).
		with("templates/server.yaml", serverTemplate).with("templates/extra.yaml", extraTemplate)
	second := hookChart("1.1.0").with("crds/widget.yaml", definition(group, "second"))
	for _, step := range []struct {
		service        *carrier.Service
		objects, hooks []string
		notes          []string
	}{{
		service: serviceIn(t, name, first),
		objects: []string{
			"create Namespace " + name, "create CustomResourceDefinition widgets." + group,
			"create ConfigMap web-extra", "create ConfigMap web-page", "create Deployment server", "create Widget one",
		},
		hooks: []string{"create ConfigMap web-hook"}, notes: []string{"runs the hook pre-install: ConfigMap web-hook"},
	}, {
		service: serviceIn(t, name, second),
		objects: []string{
			"update CustomResourceDefinition widgets." + group, "update ConfigMap web-page",
			"delete ConfigMap web-extra", "delete Deployment server", "delete Widget one",
		},
		hooks: []string{"delete ConfigMap web-hook", "create ConfigMap web-hook"}, notes: []string{"runs the hook pre-upgrade: ConfigMap web-hook"},
	}, {
		service: serviceIn(t, name, nil, gone),
		objects: []string{"delete ConfigMap web-page"},
		hooks:   []string{"delete ConfigMap web-hook", "create ConfigMap web-hook"}, notes: []string{"runs the hook pre-delete: ConfigMap web-hook"},
	}} {
		result := k.compute(step.service)
		equal(t, "the plan", objectsIn(result.Changes), step.objects)
		equal(t, "the notes", result.Notes, step.notes)
		objects, hooks := k.done(step.service, result)
		equal(t, "what was done", objects, step.objects)
		equal(t, "what was done for hooks", hooks, step.hooks)
	}
	removal := serviceIn(t, name, nil, gone)
	result := k.compute(removal)
	equal(t, "the plan of the end", summary(result.Changes), []string{"delete ConfigMap web-hook", "delete HelmRelease web"})
	_, hooks := k.done(removal, result)
	equal(t, "what was done at the end", hooks, []string{"delete ConfigMap web-hook"})
	if err := k.user.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
		t.Fatal(err)
	}
}

func TestWhatIsTakenBackIsDoneAsPlanned(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Now())
	k := newKit(t, helm.Config{Clock: clock})
	chart := func(version string) files {
		return pageChart(version).with("templates/server.yaml", serverTemplate)
	}
	const service = "apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {clusterIP: None, ports: [{port: 80}]}\n"
	late := func(service *carrier.Service) *carrier.Result {
		k.settle(service)
		clock.SetTime(clock.Now().Add(2 * time.Hour))
		result := k.compute(service)
		if result.Health.Phase != v1alpha1.ServiceStateFailed {
			t.Fatalf("it is %+v", result.Health)
		}
		return result
	}
	never := k.service(chart("0.1.0").with("templates/service.yaml", service).with("templates/extra.yaml", extraTemplate), takenBack(time.Hour))
	result := late(never)
	want := []string{"delete Service web", "delete Deployment server", "delete ConfigMap web-extra", "delete ConfigMap web-page"}
	equal(t, "the plan of an installation that is taken back", objectsIn(result.Changes), want)
	objects, _ := k.done(never, result)
	equal(t, "what was done", objects, want)

	clock.SetTime(time.Now())
	good := k.service(chart("1.0.0"), takenBack(time.Hour))
	k.settle(good)
	k.rolledOut()
	k.settle(good)
	bad := k.service(chart("2.0.0").with("templates/service.yaml", service).with("templates/extra.yaml", extraTemplate), takenBack(time.Hour))
	result = late(bad)
	want = []string{"update ConfigMap web-page", "update Deployment server", "delete ConfigMap web-extra", "delete Service web"}
	equal(t, "the plan of an upgrade that is taken back", objectsIn(result.Changes), want)
	objects, _ = k.done(bad, result)
	equal(t, "what was done", objects, want)
}
