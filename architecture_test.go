package operatorkit_test

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/operatorkit/operatorkit"

type goPackage struct {
	ImportPath   string
	Imports      []string
	TestImports  []string
	XTestImports []string
}

// list runs go list. What that reads is unknown to Go's cache of test results, so that a result counts for one run of the suite only.
func list(t *testing.T, args ...string) []byte {
	t.Helper()
	_ = os.Getenv("SUITE_RUN")
	cmd := exec.CommandContext(t.Context(), "go", append([]string{"list"}, args...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v\n%s", cmd.Args, err, &stderr)
	}
	return out
}

// TestImportsGoOneWay holds the direction of the design: resources know the framework, the operator knows them all,
// nobody knows the examples, and the framework knows no client.
func TestImportsGoOneWay(t *testing.T) {
	// A package whose path begins with the key must not import one whose path begins with a value.
	clients := []string{"k8s.io/client-go/kubernetes", "k8s.io/client-go/dynamic", "k8s.io/client-go/rest", "k8s.io/client-go/tools",
		"sigs.k8s.io/controller-runtime", "github.com/nats-io"}
	forbidden := map[string][]string{
		module + "/context":   {module + "/framework", module + "/informer", module + "/resource", module + "/operator", "k8s.io"},
		module + "/informer":  {module + "/framework", module + "/resource", module + "/operator"},
		module + "/framework": append([]string{module + "/resource", module + "/operator", module + "/informer/"}, clients...),
		module + "/resource":  {module + "/operator"},
		module:                {module + "/examples"},
	}
	decoder := json.NewDecoder(bytes.NewReader(list(t, "-json=ImportPath,Imports", "./...")))
	packages := 0
	for {
		var p goPackage
		err := decoder.Decode(&p)
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		packages++
		for from, targets := range forbidden {
			if !within(p.ImportPath, from) || within(p.ImportPath, module+"/examples") {
				continue
			}
			for _, imported := range p.Imports {
				if i := slices.IndexFunc(targets, func(to string) bool { return within(imported, to) }); i >= 0 {
					t.Errorf("%s imports %s: nothing in %s may import %s", p.ImportPath, imported, from, targets[i])
				}
			}
		}
	}
	if packages < 10 {
		t.Errorf("only %d packages were looked at", packages)
	}
}

// TestUsersCompileOnlyWhatTheyImport shows that a program with framework and informer alone links none of the large
// systems that other parts stand on.
func TestUsersCompileOnlyWhatTheyImport(t *testing.T) {
	heavy := []string{"k8s.io/kubernetes", "helm.sh/helm", "github.com/nats-io", "github.com/moby", "github.com/docker", "go.etcd.io/etcd/server"}
	deps := strings.Fields(string(list(t, "-deps", "./framework", "./informer")))
	if !slices.Contains(deps, module+"/informer") {
		t.Fatal("go list -deps did not list the packages themselves")
	}
	for _, d := range deps {
		if i := slices.IndexFunc(heavy, func(h string) bool { return within(d, h) }); i >= 0 {
			t.Errorf("framework and informer depend on %s", d)
		}
	}
	// Spans are made by the API of OpenTelemetry; where they go is the business of the program.
	const sdk, api = "go.opentelemetry.io/otel/sdk", "go.opentelemetry.io/otel/trace"
	deps = strings.Fields(string(list(t, "-deps", "./framework", "./informer", "./operator")))
	if i := slices.IndexFunc(deps, func(d string) bool { return within(d, sdk) }); i >= 0 || !slices.Contains(deps, api) {
		t.Errorf("framework, informer and operator must depend on %s and not on %s", api, sdk)
	}
	for _, m := range strings.Fields(string(list(t, "-m", "-f", "{{.Path}}", "all"))) {
		if m == "k8s.io/kubernetes" {
			t.Errorf("the module depends on %s", m)
		}
	}
}

// TestWhatIsHeavyIsLinkedByWhoWiresItIn shows that only an operator that asks for expressions, Git or signatures links what reads them.
func TestWhatIsHeavyIsLinkedByWhoWiresItIn(t *testing.T) {
	native := module + "/resource/statemanager/native"
	light := strings.Fields(string(list(t, "-deps", "./operator/statemanagers", "./operator/servicesets", "./examples/...")))
	for wired, heavy := range map[string]string{
		native + "/health":       "github.com/google/cel-go",
		native + "/fetch/git":    "github.com/go-git",
		native + "/fetch/cosign": "github.com/sigstore",
	} {
		linked := strings.Fields(string(list(t, "-deps", wired)))
		for _, h := range []string{wired, heavy} {
			is := func(d string) bool { return within(d, h) }
			if slices.ContainsFunc(light, is) {
				t.Errorf("state managers or examples depend on %s", h)
			}
			if !slices.ContainsFunc(linked, is) {
				t.Errorf("nobody links %s: the test looks for something else", h)
			}
		}
	}
}

// TestMarksOfOwnersBringNoSources shows that a state manager which has others fetch charts and files does not link what fetches them.
func TestMarksOfOwnersBringNoSources(t *testing.T) {
	const most = 650
	linked := strings.Fields(string(list(t, "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", "./resource/statemanager/sveltos")))
	if len(linked) > most {
		t.Errorf("the state manager for Sveltos links %d packages, and may link %d", len(linked), most)
	}
	if !slices.Contains(linked, module+"/resource/statemanager/native/carrier") {
		t.Error("the state manager for Sveltos does not link package carrier: the test looks at something else")
	}
}

// within tells whether a path is the prefix or below it. A prefix that ends with a slash means only what is below.
func within(path, prefix string) bool {
	if strings.HasSuffix(prefix, "/") {
		return strings.HasPrefix(path, prefix)
	}
	return path == prefix || strings.HasPrefix(path, prefix+"/")
}
