package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/operatorkit/operatorkit/operator/operatortest"
)

// tiny returns an environment whose rows take no time, on the API server that tests share.
func tiny(t *testing.T) *environment {
	t.Helper()
	if testing.Short() {
		t.Skip("left to make test-all: it measures")
	}
	cluster, err := connect(operatortest.Start(t).RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return &environment{
		stopwatch: stopwatch{rounds: 2, progress: io.Discard},
		sizes: sizes{
			keys: 100, noops: 50, services: []int{10, 20}, primaries: 20, workers: []int{2, 3}, changes: 5, failing: 100, provided: 100, cached: 30, secrets: 30, sharded: sharded{primaries: 48, namespaces: 12, wait: time.Millisecond}, steady: steady{rate: 100, duration: 200 * time.Millisecond}, entries: 40, roundTrip: time.Microsecond,
			owned:    []int{5, 20},
			upgrades: upgrades{chains: 2, templates: 10},
			stream:   stream{keys: 10, rate: 500, warmUp: 100 * time.Millisecond, duration: 200 * time.Millisecond},
			machines: machineServices{containers: []int32{10, 20}, engines: 1, replicas: 2, parallelism: []int{1, 2}},
			plans:    manyPlans{services: 8, workers: 4, machines: 2},
			graphs:   graphs{services: 2, clusters: []int{2, 4}},
			fleet:    fleet{clusters: 4, services: 3, charts: 1, objects: 1},

			chartObjects: 3,
		},
		samples: map[string]series{},
		cluster: cluster,
	}
}

func TestEveryRowMeasuresItsContenders(t *testing.T) {
	e := tiny(t)
	want := map[string][]string{
		"empty":                    {controllerRuntime, operatorKit},
		"noop":                     {directly, throughQueue, doingNothing},
		"serviceset":               {"10 services", "20 services"},
		"servicestates":            {"10 services", "20 services"},
		"upgradepaths":             {resolved, pathsAnew, pathsWithout},
		"deployment":               {"10 containers", "20 containers"},
		"coldstart with 2 workers": {bareLoop, watchingLoop, controllerRuntime, operatorKit},
		"coldstart with 3 workers": {bareLoop, watchingLoop, controllerRuntime, operatorKit},
		"cache":                    {controllerRuntime, operatorKit},
		"secrets":                  {controllerRuntime, operatorKit},
		"sharding":                 {"not shared", "1 replica", "2 replicas", "4 replicas"},
		"graphs":                   {"2 clusters", "4 clusters"},
		"steady":                   {bareLoop, controllerRuntime, operatorKit},
		"serviceprovider":          {controllerRuntime, operatorKit},
		"natscoldstart 1µs away":   {bareLoop, operatorKit},
		"natscoldstart at hand":    {bareLoop, operatorKit},
		"natsentries":              {"5 entries", "20 entries"},
		"natsstream":               {operatorKit},
		"shadow, cold start":       {besideShadow, alone},
		"shadow, one by one":       {besideShadow, alone},
		"inspector, cold start":    {inspected, uninspected},
		"inspector, empty":         {inspected, uninspected},
		"inspector, noop":          {inspected, uninspected},
		"page":                     {"100 failing", "10 failing"},
		"pagework":                 {searchedForOne, searchedForMany, unsearched},
		"staleplans":               {operatorKit},
		"chartremoval":             {operatorKit},
		"statemanager":             {operatorKit},

		"statemanager, one cluster":          {operatorKit},
		"statemanager, all clusters but one": {besideDead, besideQuiet},
	}
	const stream = "natsstream"
	once := []string{stream, "statemanager"}
	for _, r := range rows() {
		lines, err := r.run(t.Context(), e)
		if err != nil {
			t.Fatalf("%s: %v", r.name, err)
		}
		for _, l := range lines {
			for name, value := range l.Figures {
				// Of changes that take no time hardly more is measured than of none, and of few plans none may go stale.
				if nothing := r.name == "steady" || r.name == "staleplans"; !nothing && (value < 0 || value == 0 && l.Unit != counted) {
					t.Errorf("%s: %s of %s is %v", r.name, l.Measure, name, value)
				}
			}
		}
	}
	got := map[string][]string{}
	for what, s := range e.samples {
		got[what] = slices.Sorted(maps.Keys(s))
		for name, rounds := range s {
			want := e.rounds
			if slices.Contains(once, what) {
				want = 1
			}
			if len(rounds) != want {
				t.Errorf("%s of %s was measured %d times, want %d", what, name, len(rounds), want)
			}
		}
	}
	for _, names := range want {
		slices.Sort(names)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what was measured (-want +got):\n%s", diff)
	}
	if lost := e.samples[stream][operatorKit][0].Extra[keysLost]; lost != 0 {
		t.Errorf("%v keys were lost", lost)
	}
	for _, workers := range []string{"2", "3"} {
		for _, name := range []string{controllerRuntime, operatorKit} {
			for _, one := range e.samples["coldstart with "+workers+" workers"][name] {
				n := int(one.Extra[reconciliations])
				if n < e.primaries || n > e.primaries && name == operatorKit {
					t.Errorf("%s did %d reconciliations for %d primaries", name, n, e.primaries)
				}
			}
		}
	}
	for _, ns := range e.cluster.namespaces {
		if !strings.HasPrefix(ns, "bench-") {
			t.Errorf("namespace %q does not say whose it is", ns)
		}
	}
}

func TestColdStartLeavesNoChildren(t *testing.T) {
	e := tiny(t)
	if _, err := coldStarts(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	var left corev1.ConfigMapList
	if err := e.cluster.client.List(t.Context(), &left); err != nil {
		t.Fatal(err)
	}
	primaries := 0
	for _, c := range left.Items {
		switch {
		case c.Namespace != e.cluster.namespaces[0]:
		case c.Labels[roleLabel] == roleChild:
			t.Errorf("child %s is left", c.Name)
		case c.Labels[roleLabel] == rolePrimary:
			primaries++
		}
	}
	if primaries != e.primaries {
		t.Errorf("%d primaries, want %d", primaries, e.primaries)
	}
}

func TestTableSaysWhatIsMetAndWhatIsNot(t *testing.T) {
	s := series{
		controllerRuntime: {{Nanoseconds: 10_000, Allocations: 22}, {Nanoseconds: 30_000, Allocations: 22}, {Nanoseconds: 11_000, Allocations: 22}},
		operatorKit:       {{Nanoseconds: 2_000, Allocations: 6}, {Nanoseconds: 6_000, Allocations: 6}, {Nanoseconds: 5_000, Allocations: 6}},
	}
	var out bytes.Buffer
	err := printTable(&out, []line{
		compareLine("time", inMicroseconds, s, nanoseconds).ratioAtMost(0.25),
		compareLine("allocations", counted, s, allocations).atMost(5),
		line{Measure: "throughput", Unit: inPercent, Figures: map[string]float64{bareLoop: 100, operatorKit: 96.04}}.atLeast(95),
		reportLine("memory", inBytes, s, memory),
		{Measure: "rollout", Unit: inMicroseconds, Figures: map[string]float64{operatorKit: 13.3e9}},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := `measure       bare loop   controller-runtime   operatorkit   ratio   aim
time          –           11.00 µs             5.00 µs       0.20    ≤ ratio 0.25   met
allocations   –           22                   6             0.27    ≤ 5            not met
throughput    100.0 %     –                    96.0 %        –       ≥ 95.0 %       met
memory        –           –                    0 B           –       –              –
rollout       –           –                    13.30 s       –       –              –
`
	if diff := cmp.Diff(want, trimLines(out.String())); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
}

func trimLines(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}

func TestCommandLineIsChecked(t *testing.T) {
	for name, args := range map[string][]string{
		"no rounds":      {"-rounds", "0"},
		"a bad pattern":  {"-run", "("},
		"a strange flag": {"-fast"},
	} {
		var stderr bytes.Buffer
		if code := command(t.Context(), args, io.Discard, &stderr); code != 2 || stderr.Len() == 0 {
			t.Errorf("%s: exit code %d, message %q", name, code, stderr.String())
		}
	}
}

func TestChosenRowsAreWrittenAsTableAndJSON(t *testing.T) {
	kube := operatortest.Start(t)
	t.Setenv(operatortest.KubeconfigVariable, kube.Kubeconfig())
	file := filepath.Join(t.TempDir(), "results.json")
	e := &environment{
		stopwatch: stopwatch{rounds: 1, progress: io.Discard},
		sizes:     sizes{keys: 100, noops: 10},
		samples:   map[string]series{},
	}
	var out bytes.Buffer
	err := measureRows(t.Context(), e, options{rows: regexp.MustCompile("empty"), json: file}, &out)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "empty reconciliation of 100 keys") || strings.Contains(out.String(), "no-op") {
		t.Errorf("the table is not that of the one row:\n%s", &out)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var results struct {
		Lines   []line
		Samples map[string]series
	}
	if err := json.Unmarshal(data, &results); err != nil {
		t.Fatal(err)
	}
	if len(results.Lines) == 0 || len(results.Samples["empty"][operatorKit]) != 1 {
		t.Errorf("results: %s", data)
	}

	err = measureRows(t.Context(), e, options{rows: regexp.MustCompile("nothing")}, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "no row matches") {
		t.Errorf("a pattern that matches no row: %v", err)
	}
}

func TestEveryRowIsDescribed(t *testing.T) {
	const page = "../../docs/performance.md"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	var help bytes.Buffer
	if code := command(t.Context(), []string{"-help"}, io.Discard, &help); code != 0 {
		t.Fatalf("-help: exit code %d", code)
	}
	for _, name := range rowNames() {
		if !strings.Contains(string(text), "\n### `"+name+"`\n") {
			t.Errorf("%s has no section about row %s", page, name)
		}
		if !strings.Contains(help.String(), name) {
			t.Errorf("the help does not name row %s", name)
		}
	}
}

func TestAFailureNamesRowAndContender(t *testing.T) {
	boom := errors.New("boom")
	w := stopwatch{rounds: 1, progress: io.Discard}
	_, err := w.measure(t.Context(), "row", contender{"one", 1, func(context.Context, *testing.B) error { return boom }})
	if !errors.Is(err, boom) || !strings.Contains(err.Error(), "row of one") {
		t.Errorf("error: %v", err)
	}
}
