package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
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
var refusedKinds = []string{"Package", "GroupVersion", "VersionLabel", "AddToScheme", "CRDs", "WatchEvent", "ListOptions", "DeleteOptions", "Func", "Map", "StoreList"}

// oddProject writes projects with kinds into folders of one module, so that one command checks all, and returns its folder.
func oddProject(t *testing.T, kinds []string) string {
	t.Helper()
	dir := newProject(t)
	for _, kind := range kinds {
		n := &names{Name: "odd", Group: "odd.example.com", Kit: "v0.0.0"}
		if err := n.setKind(kind); err != nil {
			t.Fatal(err)
		}
		n.Module = "example.com/shop/odd/p" + n.Singular
		made, err := project(n)
		if err != nil {
			t.Fatal(err)
		}
		delete(made, "go.mod")
		if _, err := made.write(filepath.Join(dir, "odd/p"+n.Singular)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// checked are the odd kinds, or with -short those of known faults and every twentieth of the others.
func checked() []string {
	if !testing.Short() {
		return oddKinds
	}
	kinds := oddKinds[:10:10]
	for i := 10; i < len(oddKinds); i += 20 {
		kinds = append(kinds, oddKinds[i])
	}
	return kinds
}

func TestProjectsOfOddKindsCompile(t *testing.T) {
	_ = os.Getenv("SUITE_RUN") // what the compiler reads of the checkout is unknown to Go's cache of test results
	if len(oddKinds) < 200 {
		t.Errorf("there are %d odd kinds", len(oddKinds))
	}
	tool(t, oddProject(t, slices.DeleteFunc(checked(), func(kind string) bool { return slices.Contains(refusedKinds, kind) })), "go", "vet", "./odd/...")
}

func TestOddKindsAreAddedToAProject(t *testing.T) {
	_ = os.Getenv("SUITE_RUN")
	dir := newProject(t)
	for _, kind := range checked() {
		if kind == "Store" || slices.Contains(refusedKinds, kind) {
			continue
		}
		t.Chdir(dir)
		var out bytes.Buffer
		if code := execute([]string{"add", "api", "--kind", kind}, &out, &out); code != 0 && !strings.Contains(out.String(), "there are files already that would be") {
			t.Errorf("--kind %s: %s", kind, &out)
		}
	}
	tool(t, dir, "go", "vet", "./...")
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
