package main

import (
	"bytes"
	"cmp"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// oddKinds are kinds whose names mean something in a project, in Go, in YAML or in Kubernetes.
var oddKinds = strings.Fields(`
	Listing Status Objects V1 Doc Rights Vendor Init Error Config
	V2 V10 Version Versions Parts New Resource Resources Framework Frameworks Operator Operators Command Commands Context Contexts Runtime Runtimes
	API Api Apis Bin Deploy Deployment Sample Samples Chart Makefile Dockerfile Readme Main Test Tests Testing Testdata Internal Cmd Pkg Src Go Mod Sum Lives Life
	Directories Entry Entries Memory Client Clients Server URL HTTP HTTPRoute Http Url Pflag Fmt Os Io Embed Time Errors Strings Sync Log Json Yaml Xml
	String Int Int64 Bool Byte Rune Float64 Complex128 Any Comparable Uintptr True False Nil Iota Append Cap Clear Close Complex Copy Delete Imag Len Make Max Min Panic Print Println Real Recover
	Yes No On Off Null Y N E1 NaN Inf Infinity None Undefined
	Spec Specs Meta Metadata TypeMeta ObjectMeta ListMeta Items Item Kind Kinds Group Groups GroupKind Scheme Schema Object Condition Conditions Ready Owner Owned Label Labels Event Events
	Pod Service ConfigMap Secret Namespace Node Job CronJob Endpoints Ingress NetworkPolicy StatefulSet CustomResourceDefinition Scale Table Eviction Binding APIService Lease
	Text Title Home Hello Name Names Plural Singular Package Packages Module Modules
	Mouse Sheep Fish Bus Box Boxes Quiz City Key Policy Analysis Series Data Datum Index Matrix Hero Leaf Day
	A B Ab A1 X509 ABC AbCdEf DB DNS IPAddress OAuth2Client S3 K8s VPC UUID Foo2Bar ShopAssistantAppointment
	Windows Linux Darwin Amd64 Arm64 Unix Cgo Js Wasm
	AllocationAndReconciliationOfVeryLongNamesOfKindsForTests12
	GroupVersionKind VersionLabels CRD Crds DeepCopy DeepCopyInto DeepCopyObject AddToSchemes NewConfig SampleOf LifeOf
	Update Watch Get Create Patch Plan Apply Run Explain Manifest Shadow Mark Gate Guard Queue Source Store Stores
`)

// refusedKinds are those that Go or Kubernetes has already where they would be declared.
var refusedKinds = []string{"Package", "GroupVersion", "VersionLabel", "AddToScheme", "CRDs", "WatchEvent", "ListOptions", "DeleteOptions", "Func", "Map", "Go", "StoreList"}

// checker type-checks projects against what their dependencies export.
type checker struct {
	files *token.FileSet
	kit   types.Importer
	// own are the packages of the project that is being checked.
	own map[string]*types.Package
}

// newChecker has what a project imports compiled, once for all.
func newChecker(t *testing.T) *checker {
	t.Helper()
	_ = os.Getenv("SUITE_RUN") // what the compiler reads of the checkout is unknown to Go's cache of test results
	exports := map[string]string{}
	for line := range strings.Lines(tool(t, newProject(t), "go", "list", "-export", "-deps", "-test", "-f", "{{.ImportPath}}={{.Export}}", "./...")) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), "=")
		exports[path] = file
	}
	c := &checker{files: token.NewFileSet()}
	c.kit = importer.ForCompiler(c.files, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	return c
}

// Import implements types.Importer.
func (c *checker) Import(path string) (*types.Package, error) {
	if own := c.own[path]; own != nil {
		return own, nil
	}
	return c.kit.Import(path)
}

// check returns the faults in the Go files of a project, whose package main comes last.
func (c *checker) check(module string, project map[string]string) error {
	c.own = map[string]*types.Package{}
	packages := map[string][]*ast.File{}
	for path, content := range project {
		if strings.HasSuffix(path, ".go") {
			parsed, err := parser.ParseFile(c.files, path, content, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			packages[filepath.Dir(path)] = append(packages[filepath.Dir(path)], parsed)
		}
	}
	// Those of kinds import the first two, and package main imports all.
	rank := func(folder string) int {
		switch folder {
		case "api/v1alpha1", "directory":
			return 0
		case ".":
			return 2
		}
		return 1
	}
	for _, folder := range slices.SortedFunc(maps.Keys(packages), func(a, b string) int { return cmp.Compare(rank(a), rank(b)) }) {
		path := strings.TrimSuffix(module+"/"+folder, "/.")
		made, err := (&types.Config{Importer: c}).Check(path, c.files, packages[folder], nil)
		if err != nil {
			return err
		}
		c.own[path] = made
	}
	return nil
}

func TestOddKindsMakeProjectsThatCompile(t *testing.T) {
	if len(oddKinds) < 200 {
		t.Errorf("there are %d odd kinds", len(oddKinds))
	}
	c := newChecker(t)
	t.Run("new", func(t *testing.T) { eachIsMade(t, c) })
	t.Run("add api", func(t *testing.T) { allAreAdded(t, c) })
}

// eachIsMade makes a project of each kind.
func eachIsMade(t *testing.T, c *checker) {
	t.Helper()
	for _, kind := range oddKinds {
		if slices.Contains(refusedKinds, kind) {
			continue
		}
		n := &names{Name: "shop", Module: "example.com/shop", Group: "shop.example.com", Kit: "v0.0.0"}
		if err := n.setKind(kind); err != nil {
			t.Error(err)
			continue
		}
		made, err := project(n)
		if err != nil {
			t.Errorf("%s: %v", kind, err)
			continue
		}
		texts := map[string]string{}
		for path, content := range made {
			texts[path] = string(content)
		}
		if err := c.check(n.Module, texts); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
		var sample struct{ Kind string }
		if err := yaml.Unmarshal(made["samples/"+n.Package+".yaml"], &sample); err != nil || sample.Kind != kind {
			t.Errorf("%s: the sample is of the kind %q: %v", kind, sample.Kind, err)
		}
		var crd apiextensionsv1.CustomResourceDefinition
		if err := yaml.UnmarshalStrict(made["api/v1alpha1/crd/"+n.Group+"_"+n.Plural+".yaml"], &crd); err != nil || crd.Spec.Names.Kind != kind || crd.Spec.Names.Singular != n.Singular {
			t.Errorf("%s: the definition is of %+v: %v", kind, crd.Spec.Names, err)
		}
	}
}

// allAreAdded adds all kinds to one project.
func allAreAdded(t *testing.T, c *checker) {
	t.Helper()
	dir := newProject(t)
	for _, kind := range oddKinds {
		if kind == "Store" || slices.Contains(refusedKinds, kind) {
			continue
		}
		t.Chdir(dir)
		var out bytes.Buffer
		if code := execute([]string{"add", "api", "--kind", kind}, &out, &out); code != 0 && !strings.Contains(out.String(), "there are files already that would be") {
			t.Errorf("--kind %s: %s", kind, &out)
		}
	}
	if err := c.check("example.com/shop", contents(t, dir)); err != nil {
		t.Error(err)
	}
	for kind, want := range map[string]string{
		"StoreSpec":   "would declare StoreSpec, and api/v1alpha1/store.go does that already",
		"StoreStatus": "would declare StoreStatus, and api/v1alpha1/store.go does that already",
	} {
		refused(t, dir, want, "add", "api", "--kind", kind)
	}
	for _, kind := range refusedKinds {
		refused(t, dir, "choose another one, such as", "add", "api", "--kind", kind)
	}
}

func TestAKindThatGoOrKubernetesHasIsRefused(t *testing.T) {
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range refusedKinds {
		t.Chdir(here)
		folder := filepath.Join(t.TempDir(), "shop")
		var out bytes.Buffer
		code := execute([]string{"new", folder, "--module", "example.com/shop", "--group", "shop.example.com", "--kind", kind}, &out, &out)
		if _, err := os.Stat(folder); code != 1 || err == nil || !strings.Contains(out.String(), "choose another one, such as") {
			t.Errorf("--kind %s: exit code %d: %s", kind, code, &out)
		}
	}
}
