package statemanager_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager"
)

func key(name string) client.ObjectKey { return client.ObjectKey{Namespace: "default", Name: name} }

func names(keys []client.ObjectKey) string {
	texts := make([]string, len(keys))
	for i, k := range keys {
		texts[i] = k.Name
	}
	return strings.Join(texts, " ")
}

// on are services that another one depends on.
func on(names ...string) (dependsOn []v1alpha1.ServiceDependsOn) {
	for _, name := range names {
		dependsOn = append(dependsOn, v1alpha1.ServiceDependsOn{Name: name})
	}
	return dependsOn
}

type builder struct{ *v1alpha1.ServiceSet }

func newSet(name string) builder {
	return builder{&v1alpha1.ServiceSet{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, UID: types.UID(name)}}}
}

func (b builder) lists(name string, dependsOn ...string) builder {
	b.Spec.Services = append(b.Spec.Services, v1alpha1.ServiceWithValues{Name: name, Template: name + "-2", Version: "2", DependsOn: on(dependsOn...)})
	return b
}

func (b builder) uninstalls(name string) builder {
	b = b.lists(name)
	b.Spec.Services[len(b.Spec.Services)-1].HelmAction = v1alpha1.HelmActionUninstall
	return b
}

func (b builder) removes(name string, dependsOn ...string) builder {
	b.Spec.Removing = append(b.Spec.Removing, v1alpha1.ServiceRemoval{Name: name, DependsOn: on(dependsOn...)})
	return b
}

func (b builder) has(name string, phase v1alpha1.ServicePhase, version string) builder {
	b.Status.Services = append(b.Status.Services, v1alpha1.ServiceState{Name: name, Namespace: "default", Template: name + "-" + version, Version: version, State: phase})
	return b
}

func (b builder) deleted() builder {
	now := metav1.NewTime(time.Unix(0, 0))
	b.DeletionTimestamp = &now
	return b
}

func orderOf(set builder, others ...builder) *statemanager.Order {
	s := &statemanager.Set{ServiceSet: set.ServiceSet}
	for _, other := range others {
		s.Others = append(s.Others, other.ServiceSet)
	}
	return statemanager.NewOrder(s)
}

const (
	deployed     = v1alpha1.ServiceStateDeployed
	provisioning = v1alpha1.ServiceStateProvisioning
	deleting     = v1alpha1.ServiceStateDeleting
)

func TestServicesWaitForWhatTheyDependOn(t *testing.T) {
	own := map[client.ObjectKey]v1alpha1.ServiceState{}
	put := func(name string, phase v1alpha1.ServicePhase, version string) {
		own[key(name)] = v1alpha1.ServiceState{Name: name, Template: name + "-" + version, Version: version, State: phase}
	}
	put("ready", deployed, "2")
	put("old", deployed, "1")
	put("slow", provisioning, "2")
	set := newSet("a").lists("ready").lists("old").lists("slow").lists("web", "ready", "old", "slow", "absent", "theirs", "leaving", "outdated")
	others := []builder{
		newSet("b").lists("theirs").has("theirs", deployed, "2").lists("outdated").has("outdated", deployed, "1"),
		newSet("c").lists("leaving").has("leaving", deployed, "2").deleted(),
	}
	waits := orderOf(set, others...).Waits(&set.Spec.Services[3], own)
	if got, want := names(waits), "old slow absent leaving outdated"; got != want {
		t.Errorf("web waits for %q, want %q", got, want)
	}
}

func TestWhatIsUninstalledAsItIsListedIsNotWaitedFor(t *testing.T) {
	set := newSet("a").lists("web", "off", "still", "theirs", "gone")
	for _, name := range []string{"off", "still"} {
		set = set.uninstalls(name)
	}
	own := map[client.ObjectKey]v1alpha1.ServiceState{
		key("off"):   {Name: "off", Template: "off-2", Version: "2", State: v1alpha1.ServiceStateDeleted},
		key("still"): {Name: "still", Template: "still-2", Version: "2", State: deployed},
	}
	other := newSet("b").uninstalls("theirs").has("theirs", v1alpha1.ServiceStateDeleted, "2").lists("gone").has("gone", v1alpha1.ServiceStateDeleted, "2")
	order := orderOf(set, other)
	if got, want := names(order.Waits(&set.Spec.Services[0], own)), "still gone"; got != want {
		t.Errorf("web waits for %q, want %q", got, want)
	}
	// What is handed over to a set that uninstalls it is nowhere Deployed.
	if order.Deployed(other.ServiceSet, key("theirs")) {
		t.Error("what is uninstalled counts as taken over")
	}
}

func TestServicesAreSortedByWhatTheyDependOn(t *testing.T) {
	set := newSet("a").lists("app", "web", "db").lists("web", "db").lists("x").lists("db", "elsewhere")
	var sorted []string
	for _, entry := range orderOf(set).Sorted() {
		sorted = append(sorted, entry.Name)
	}
	if got, want := strings.Join(sorted, " "), "db web app x"; got != want {
		t.Errorf("sorted: %q, want %q", got, want)
	}
}

func TestServicesGoAfterWhatDependsOnThem(t *testing.T) {
	cases := map[string]struct {
		set    builder
		others []builder
		of     string
		want   string
	}{
		"what is being removed with it": {
			set: newSet("a").removes("db").has("db", deployed, "1").removes("web", "db").has("web", deployed, "1"), of: "db", want: "web",
		},
		"what is gone already does not count": {
			set: newSet("a").removes("db").has("db", deployed, "1").removes("web", "db"), of: "db",
		},
		"what stays does not count": {
			set: newSet("a").removes("db").has("db", deployed, "1").lists("web", "db").has("web", deployed, "1"), of: "db",
		},
		"in another set": {
			set:    newSet("a").removes("db").has("db", deployed, "1"),
			others: []builder{newSet("b").removes("web", "db").has("web", deleting, "1")}, of: "db", want: "web",
		},
		"all of a set that is being deleted": {
			set: newSet("a").lists("db").has("db", deployed, "1").lists("web", "db").has("web", deployed, "1").deleted(), of: "db", want: "web",
		},
		"what is handed over does not count": {
			set:    newSet("a").removes("db").has("db", deployed, "1").removes("web", "db").has("web", deployed, "1"),
			others: []builder{newSet("b").lists("web", "db")}, of: "db",
		},
		"what another set uninstalls counts": {
			set:    newSet("a").removes("db").has("db", deployed, "1").removes("web", "db").has("web", deployed, "1"),
			others: []builder{newSet("b").uninstalls("web")}, of: "db", want: "web",
		},
		"a circle waits for nothing in it": {
			set: newSet("a").removes("db", "web").has("db", deployed, "1").removes("web", "db").has("web", deployed, "1"), of: "db",
		},
		"a circle waits for what depends on it": {
			set: newSet("a").removes("db", "web").has("db", deployed, "1").removes("web", "db").has("web", deployed, "1").
				removes("app", "web").has("app", deployed, "1"), of: "web", want: "app",
		},
	}
	for name, tt := range cases {
		t.Run(name, func(t *testing.T) {
			if got := names(orderOf(tt.set, tt.others...).Before(key(tt.of))); got != tt.want {
				t.Errorf("%s goes after %q, want %q", tt.of, got, tt.want)
			}
		})
	}
}

// TestRemovalsAlwaysEnd holds for any dependencies, circles included: each pass takes something away.
func TestRemovalsAlwaysEnd(t *testing.T) {
	all := []string{"a", "b", "c", "d", "e", "f"}
	rapid.Check(t, func(t *rapid.T) {
		set := newSet("s")
		var keys []client.ObjectKey
		depends := map[client.ObjectKey][]string{}
		for _, name := range all {
			of := rapid.SliceOfDistinct(rapid.SampledFrom(all), rapid.ID).Draw(t, name)
			set = set.removes(name, of...).has(name, deployed, "1")
			keys, depends[key(name)] = append(keys, key(name)), of
		}
		order := orderOf(set)
		left := slices.Clone(keys)
		for pass := 0; len(left) > 0; pass++ {
			if pass > len(keys) {
				t.Fatalf("%s are left of %v", names(left), depends)
			}
			for _, k := range order.Removals(left) {
				if len(order.Before(k)) == 0 {
					order.Gone(k)
					left = slices.DeleteFunc(left, func(other client.ObjectKey) bool { return other == k })
				}
			}
		}
	})
}

func TestReferencesNameAllThatASetIsMadeFrom(t *testing.T) {
	set := newSet("a").lists("chart").lists("files").lists("archive").lists("unknown")
	set.Spec.Services[0].ValuesFrom = []v1alpha1.ValuesFrom{{Kind: "ConfigMap", Name: "shared"}, {Kind: "Secret", Name: "login"}}
	set.Spec.Services[3].ValuesFrom = []v1alpha1.ValuesFrom{{Kind: "ConfigMap", Name: "shared"}}
	template := func(spec v1alpha1.ServiceTemplateSpec) *v1alpha1.ServiceTemplate {
		return &v1alpha1.ServiceTemplate{Spec: spec}
	}
	templates := map[string]*v1alpha1.ServiceTemplate{
		"chart-2":   template(v1alpha1.ServiceTemplateSpec{Helm: &v1alpha1.HelmChart{SecretName: "login"}}),
		"files-2":   template(v1alpha1.ServiceTemplateSpec{Resources: &v1alpha1.FileSource{LocalSource: &v1alpha1.LocalSource{Kind: "ConfigMap", Name: "files"}}}),
		"archive-2": template(v1alpha1.ServiceTemplateSpec{Kustomize: &v1alpha1.FileSource{Artifact: &v1alpha1.Artifact{SecretName: "registry"}}}),
	}
	var got []string
	for _, ref := range statemanager.References(set.ServiceSet, templates) {
		got = append(got, ref.Kind+" "+ref.String())
	}
	want := []string{"ConfigMap team/files", "ConfigMap team/shared", "Secret team/login", "Secret team/registry"}
	if !slices.Equal(got, want) {
		t.Errorf("references: %v, want %v", got, want)
	}
}
