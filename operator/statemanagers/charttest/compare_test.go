package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	chartcommon "helm.sh/helm/v4/pkg/chart/common"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/release/common"
	releasev1 "helm.sh/helm/v4/pkg/release/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// objectsOf are the objects of a YAML stream.
func objectsOf(t *testing.T, manifest string) objects {
	t.Helper()
	parsed, err := parse(manifest)
	if err != nil {
		t.Fatal(err)
	}
	found := objects{}
	for _, u := range parsed {
		found[keyOf(u)] = u
	}
	return found
}

func lines(differences []difference) []string {
	var all []string
	for _, d := range differences {
		all = append(all, d.String())
	}
	return all
}

const theirObjects = `
apiVersion: v1
kind: Service
metadata: {namespace: shop, name: web, uid: a, resourceVersion: "5", labels: {app: web}}
spec: {clusterIP: 10.96.0.1, clusterIPs: [10.96.0.1], ports: [{port: 80, nodePort: 30000}]}
status: {loadBalancer: {}}
---
apiVersion: batch/v1
kind: Job
metadata: {namespace: shop, name: index, generation: 1}
spec: {selector: {matchLabels: {controller-uid: a}}, template: {metadata: {labels: {controller-uid: a, app: web}}}}
---
apiVersion: v1
kind: Secret
metadata: {namespace: shop, name: web}
data: {password: b25l, key: a2V5}
---
apiVersion: v1
kind: ConfigMap
metadata: {namespace: shop, name: web}
data: {text: "one\ntwo\n", color: blue}
`

func TestWhatServersAndOurMarksAddIsNoDifference(t *testing.T) {
	ours := strings.NewReplacer(
		"uid: a", "uid: b", `"5"`, `"7"`, "10.96.0.1", "10.96.0.2", "30000", "30001", "generation: 1", "generation: 2",
		"labels: {app: web}", `labels: {app: web, services.operatorkit.io/owner: v1-x, services.operatorkit.io/service: web, services.operatorkit.io/service-namespace: shop}`,
	).Replace(theirObjects)
	if ours == theirObjects {
		t.Fatal("nothing was added")
	}
	if got := lines(compareObjects(objectsOf(t, ours), objectsOf(t, theirObjects), nil)); got != nil {
		t.Errorf("there are differences: %q", got)
	}
}

func TestADifferenceIsNamedByItsObjectAndField(t *testing.T) {
	ours := strings.NewReplacer(
		"port: 80", "port: 81", `two\n`, "two", "color: blue", "colour: blue", "b25l", "dHdv", "name: index", "name: other",
	).Replace(theirObjects)
	want := []string{
		`ConfigMap shop/web: data.color is not there, and should be "blue"`,
		`ConfigMap shop/web: data.colour is "blue", and should be not there`,
		`ConfigMap shop/web: data.text is "two", and should be "two\n"`,
		`Job.batch shop/index is not there`,
		`Job.batch shop/other is there, and should not be`,
		`Secret shop/web: data.password`,
		`Service shop/web: spec.ports[port=80,protocol=TCP].port is not there, and should be 80`,
		`Service shop/web: spec.ports[port=81,protocol=TCP].port is 81, and should be not there`,
	}
	if diff := cmp.Diff(want, lines(compareObjects(objectsOf(t, ours), objectsOf(t, theirObjects), nil))); diff != "" {
		t.Error(diff)
	}
}

func TestWhatTemplatesMakeUpIsNotCompared(t *testing.T) {
	rendering := func(password string) []*unstructured.Unstructured {
		parsed, err := parse("apiVersion: v1\nkind: Secret\nmetadata: {name: web}\nstringData: {password: " + password + ", key: key}\n")
		if err != nil {
			t.Fatal(err)
		}
		return parsed
	}
	made := madeUpBetween(rendering("one"), rendering("two"))
	if got := made.String(); got != "Secret web stringData.password" {
		t.Errorf("made up are: %s", got)
	}
	password, key := strings.ReplaceAll(theirObjects, "b25l", "dHdv"), strings.ReplaceAll(theirObjects, "a2V5", "dHdv")
	if got := lines(compareObjects(objectsOf(t, password), objectsOf(t, theirObjects), made)); got != nil {
		t.Errorf("what is made up is compared: %q", got)
	}
	want := []string{"Secret shop/web: data.key"}
	if diff := cmp.Diff(want, lines(compareObjects(objectsOf(t, key), objectsOf(t, theirObjects), made))); diff != "" {
		t.Error(diff)
	}
	record := func(text string) *releasev1.Release {
		return &releasev1.Release{Version: 1, Manifest: "---\n# Source: web\n" + text, Info: &releasev1.Info{Notes: text}}
	}
	secret := "apiVersion: v1\nkind: Secret\nmetadata: {name: web}\nstringData: {password: one, key: key}\n"
	for text, same := range map[string]bool{strings.Replace(secret, "one", "two", 1): true, strings.Replace(secret, "key: key", "key: other", 1): false} {
		got, err := compareRecords([]*releasev1.Release{record(text)}, []*releasev1.Release{record(secret)}, made)
		if err != nil {
			t.Fatal(err)
		}
		if len(got) == 0 != same {
			t.Errorf("records with %q and %q differ in: %q", text, secret, lines(got))
		}
	}
}

func TestRecordsAreComparedFieldByField(t *testing.T) {
	record := func() *releasev1.Release {
		return &releasev1.Release{
			Name: "web", Namespace: "web", Version: 2, Manifest: "---\na: b\n", Config: map[string]any{"deleted": "x"},
			Chart: &chart.Chart{Metadata: &chart.Metadata{Name: "web"}, Files: []*chartcommon.File{{Name: "LICENSE", Data: []byte("x")}}},
			Hooks: []*releasev1.Hook{{Name: "prepare", Manifest: "c: d\n"}}, Info: &releasev1.Info{Status: common.StatusDeployed},
		}
	}
	for field, change := range map[string]func(*releasev1.Release){
		"manifest":                       func(r *releasev1.Release) { r.Manifest = "---\na: c\n" },
		"config.deleted":                 func(r *releasev1.Release) { r.Config["deleted"] = "y" },
		"chart.files[name=LICENSE].data": func(r *releasev1.Release) { r.Chart.Files[0].Data = []byte("y") },
		"hooks[name=prepare].manifest":   func(r *releasev1.Release) { r.Hooks[0].Manifest = "c: e\n" },
		"info.status":                    func(r *releasev1.Release) { r.Info.Status = common.StatusFailed },
		"labels.team":                    func(r *releasev1.Release) { r.Labels = map[string]string{"team": "a"} },
	} {
		ours := record()
		ours.Labels = map[string]string{"modifiedAt": "1", "services.operatorkit.io/service": "web"}
		change(ours)
		got, err := compareRecords([]*releasev1.Release{ours}, []*releasev1.Release{record()}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if len(got) != 1 || got[0].path != field || got[0].object != "revision 2 of the release" {
			t.Errorf("a change of %s is told as %q", field, lines(got))
		}
	}
	got, err := compareRecords(nil, []*releasev1.Release{record()}, nil)
	if want := []string{"the release: number of revisions is 0, and should be 1"}; err != nil || !cmp.Equal(lines(got), want) {
		t.Errorf("a missing revision is told as %q (%v)", lines(got), err)
	}
}

func TestEveryDeviationIsInTheDocumentation(t *testing.T) {
	for _, d := range deviations {
		content, err := os.ReadFile(filepath.Join("..", "..", "..", d.file))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(content), d.line) {
			t.Errorf("%s does not say %q", d.file, d.line)
		}
	}
}

func TestTheTableTellsWhatDiffers(t *testing.T) {
	first := deviations[0]
	rows := []*row{
		{subject: &subject{name: "web", old: &version{said: "1.0.0"}, updated: &version{said: "1.1.0"}}, outcomes: []*outcome{
			{step: "install"}, {step: "again"}, {step: "upgrade", explained: []*deviation{first}}, {step: "drift", remarks: []string{"2 fields changed by hand"}}, {step: "removal"},
		}},
		{subject: &subject{name: "db", old: &version{said: "3.0.0"}}, outcomes: []*outcome{
			{step: "install", differences: []difference{{object: "ConfigMap db/db", path: "data.a", ours: "b"}, {object: "Secret db/db", theirs: "db"}}},
			{step: "again"}, {step: "upgrade", skipped: "there is one version of it only"}, {step: "drift"}, {step: "removal", faults: []string{"it does not go"}},
		}},
		{subject: &subject{name: "notes", fault: os.ErrInvalid}},
	}
	var out strings.Builder
	if err := writeTable(&out, rows); err != nil {
		t.Fatal(err)
	}
	want := `NAME   VERSIONS       INSTALL                                                                        AGAIN  UPGRADE    DRIFT  REMOVAL
web    1.0.0 → 1.1.0  equal                                                                          equal  equal (1)  equal  equal
db     3.0.0          differs: ConfigMap db/db: data.a is "b", and should be not there (and 1 more)  equal  –          equal  differs: it does not go
notes                 not tried: see below

(1) as documented in resource/statemanager/native/helm/doc.go: "unlike Helm, which never updates them"
web, drift: (2 fields changed by hand)
db, install: ConfigMap db/db: data.a is "b", and should be not there
db, install: Secret db/db is not there
db, removal: it does not go
notes: invalid argument
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
	for i, equal := range []bool{true, false, false} {
		if rows[i].isEqual() != equal {
			t.Errorf("%s is equal: %t", rows[i].subject.name, !equal)
		}
	}
}

func TestLabelsThatAJobHasFromItsPodsAreNoDifference(t *testing.T) {
	const job = `
apiVersion: batch/v1
kind: Job
metadata: {namespace: shop, name: index, labels: {controller-uid: a, app: web}}
spec: {template: {metadata: {labels: {controller-uid: a, app: web}}}}
`
	for labels, differs := range map[string]bool{"{services.operatorkit.io/owner: v1-x}": false, "{color: blue}": true} {
		ours := strings.NewReplacer("labels: {controller-uid: a, app: web}}\nspec", "labels: "+labels+"}\nspec", "uid: a", "uid: b").Replace(job)
		if got := lines(compareObjects(objectsOf(t, ours), objectsOf(t, job), nil)); len(got) > 0 != differs {
			t.Errorf("labels %s: %q", labels, got)
		}
	}
}

func TestWhatHooksHaveLeftIsADocumentedDifferenceOfARemovalOnly(t *testing.T) {
	const left = `
apiVersion: v1
kind: ConfigMap
metadata: {namespace: shop, name: left, annotations: {helm.sh/hook: post-install}}
---
apiVersion: v1
kind: ConfigMap
metadata: {namespace: shop, name: other}
`
	found := compareObjects(objects{}, objectsOf(t, left), nil)
	tried := &trial{subject: &subject{old: &version{}}}
	if unexplained, by := tried.explain(found, "removal"); len(by) != 1 || len(unexplained) != 1 || unexplained[0].key.Name != "other" {
		t.Errorf("unexplained are %q", lines(unexplained))
	}
	if unexplained, _ := tried.explain(found, "upgrade"); len(unexplained) != 2 {
		t.Errorf("unexplained are %q", lines(unexplained))
	}
}

func TestANamespaceThatStaysIsADocumentedDifferenceOfARemovalOnly(t *testing.T) {
	const left = `
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: v1
kind: ConfigMap
metadata: {namespace: shop, name: kept, annotations: {helm.sh/resource-policy: keep}}
---
apiVersion: v1
kind: ConfigMap
metadata: {namespace: shop, name: other}
---
apiVersion: v1
kind: Namespace
metadata: {name: empty}
`
	found := compareObjects(objectsOf(t, left), objects{}, nil)
	tried := &trial{subject: &subject{old: &version{}}}
	unexplained, by := tried.explain(found, "removal")
	if got := lines(unexplained); len(by) != 2 || len(got) != 2 || !strings.Contains(got[0], "ConfigMap shop/other") || !strings.Contains(got[1], "Namespace empty") {
		t.Errorf("unexplained are %q", got)
	}
	if unexplained, _ := tried.explain(found, "upgrade"); len(unexplained) != 4 {
		t.Errorf("unexplained are %q", lines(unexplained))
	}
}
