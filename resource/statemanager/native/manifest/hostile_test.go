package manifest_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/manifest"
)

func TestHostileFilesAreRefused(t *testing.T) {
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	t.Cleanup(server.Close)
	k := newKitWith(t, manifest.Config{Limits: manifest.Limits{Objects: 50, Nodes: 10_000, Bytes: 1 << 20, Kustomizations: 30, Time: 30 * time.Second}})
	with := func(text string, more ...string) files {
		f := files{"kustomization.yaml": text, "a.yaml": configMap("a", "1")}
		for i := 0; i+1 < len(more); i += 2 {
			f[more[i]] = more[i+1]
		}
		return f
	}
	tower := files{"kustomization.yaml": "resources: [l0/x, l0/y]\n"}
	for i := range 12 {
		for _, side := range []string{"x", "y"} {
			folder := fmt.Sprintf("l%d/%s/", i, side)
			tower[folder+"kustomization.yaml"] = fmt.Sprintf("namePrefix: to-%s-\nresources: [../../l%d/x, ../../l%d/y]\n", side, i+1, i+1)
		}
	}
	for _, side := range []string{"x", "y"} {
		tower["l12/"+side+"/kustomization.yaml"] = "resources: [a.yaml]\n"
		tower["l12/"+side+"/a.yaml"] = configMap("a", "1")
	}
	laughs := "a: &a [x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c <= 'i'; c++ {
		laughs += fmt.Sprintf("%c: &%c [%s]\n", c, c, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*%c,", c-1), 9), ","))
	}
	bomb := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n" + laughs
	const long = "resources: [long.yaml]\nvars: [{name: X, objref: {kind: ConfigMap, name: long, apiVersion: v1}, fieldref: {fieldpath: data.text}}]\n"
	for name, row := range map[string]struct {
		files files
		plain bool
		want  string
	}{
		"remote file":             {with("resources: ['" + server.URL + "/x.yaml']"), false, "nothing is fetched for a kustomization"},
		"remote base":             {with("resources: ['github.com/org/repo/base?ref=main']"), false, "nothing is fetched"},
		"remote base without ref": {with("resources: [GitHub.com/org/repo]"), false, "nothing is fetched"},
		"remote base by ssh":      {with("bases: ['git@example.com:org/repo']"), false, "nothing is fetched"},
		"remote component":        {with("components: ['" + server.URL + "/x']"), false, "nothing is fetched"},
		"remote patch":            {with("resources: [a.yaml]\npatches: [{path: '" + server.URL + "/p.yaml'}]"), false, "nothing is fetched"},
		"remote old patch":        {with("resources: [a.yaml]\npatchesStrategicMerge: ['" + server.URL + "/p.yaml']"), false, "nothing is fetched"},
		"remote generator file":   {with("configMapGenerator: [{name: x, files: ['k=" + server.URL + "/f']}]"), false, "nothing is fetched"},
		"remote env file":         {with("secretGenerator: [{name: x, envs: ['" + server.URL + "/f']}]"), false, "nothing is fetched"},
		"remote definitions":      {with("resources: [a.yaml]\ncrds: ['" + server.URL + "/f']"), false, "nothing is fetched"},
		"remote configuration":    {with("resources: [a.yaml]\nconfigurations: ['" + server.URL + "/f']"), false, "nothing is fetched"},
		"remote replacement":      {with("resources: [a.yaml]\nreplacements: [{path: '" + server.URL + "/f'}]"), false, "nothing is fetched"},
		"remote schema":           {with("resources: [a.yaml]\nopenapi: {path: '" + server.URL + "/f'}"), false, "it has openapi"},
		"out of the source":       {with("resources: [../../etc/passwd]"), false, "leads out of its source"},
		"absolute":                {with("resources: [/etc/passwd]"), false, "paths are relative"},
		"file above its folder":   {with("resources: [sub]", "sub/kustomization.yaml", "configMapGenerator: [{name: x, files: [../a.yaml]}]"), false, "not in or below its folder"},
		"exec plugin":             {with("generators: [gen.yaml]", "gen.yaml", "{apiVersion: example.com/v1, kind: Exec}"), false, `kind "Exec", and nothing is run`},
		"exec transformer":        {with("resources: [a.yaml]\ntransformers: ['{apiVersion: example.com/v1, kind: Exec}']"), false, `kind "Exec", and nothing is run`},
		"transformer with a function": {with("resources: [a.yaml]\ntransformers: [t.yaml]", "t.yaml", "{apiVersion: example.com/v1, kind: PatchTransformer, metadata: {name: t, "+
			"annotations: {config.kubernetes.io/function: 'exec: {path: ./x}'}}}"), false, "nothing is run"},
		"chart by a generator": {with("generators: ['{apiVersion: builtin, kind: HelmChartInflationGenerator, name: x}']"), false, "nothing is run or fetched"},
		"validator":            {with("resources: [a.yaml]\nvalidators: [t.yaml]"), false, "it has validators"},
		"remote transformer":   {with("resources: [a.yaml]\ntransformers: ['" + server.URL + "/t.yaml']"), false, "nothing is fetched"},
		"remote patch of a transformer": {with("resources: [a.yaml]\ntransformers: [t.yaml]", "t.yaml", "{apiVersion: builtin, kind: PatchTransformer, metadata: {name: t}, path: '"+server.URL+"/p'}"),
			false, "nothing is fetched"},
		"remote file of a generator": {with("generators: ['{apiVersion: builtin, kind: ConfigMapGenerator, metadata: {name: t}, files: [\"k=" + server.URL + "/p\"]}']"), false, "nothing is fetched"},
		"growing patch of a transformer": {with("resources: [a.yaml]\ntransformers: ['{apiVersion: builtin, kind: PatchJson6902Transformer, metadata: {name: t}, target: {kind: ConfigMap}, " +
			"jsonOp: \"[{op: copy, from: /data, path: /data/x}]\"}']"), false, "operation copy"},
		"growing replacement of a transformer": {with("resources: [a.yaml]\ntransformers: [t.yaml]", "t.yaml", "{apiVersion: builtin, kind: ReplacementTransformer, metadata: {name: t}, replacements: "+
			"[{source: {kind: ConfigMap, name: a, fieldPath: data}, targets: [{select: {kind: ConfigMap}, fieldPaths: [data.x], options: {create: true}}]}]}"), false, "could grow without a bound"},
		"chart":          {with("helmCharts: [{name: x, repo: '" + server.URL + "'}]"), false, "it has helmCharts"},
		"part of itself": {with("resources: [sub]", "sub/kustomization.yaml", "resources: [../sub]"), false, "part of itself"},
		"tower of bases": {tower, false, "more than 30 folders"},
		"growing patch": {with("resources: [a.yaml]\npatches: [{target: {kind: ConfigMap}, patch: '[{op: copy, from: /data, path: /data/x}]'}]"),
			false, "operation copy"},
		"growing patch in a file": {with("resources: [a.yaml]\npatches: [{target: {kind: ConfigMap}, path: p.json}]",
			"p.json", `[{"op": "copy", "from": "/data", "path": "/data/x"}]`), false, "operation copy"},
		"growing replacement": {with("resources: [a.yaml]\nreplacements: [{source: {kind: ConfigMap, name: a, fieldPath: data}, " +
			"targets: [{select: {kind: ConfigMap}, fieldPaths: [data.x], options: {create: true}}]}]"), false, "could grow without a bound"},
		"growing replacement in a file": {with("resources: [a.yaml]\nreplacements: [{path: r.yaml}]", "r.yaml",
			"- {source: {kind: ConfigMap, name: a, fieldPath: data.x}, targets: [{select: {name: b}, fieldPaths: [data.y]}]}\n"+
				"- {source: {kind: ConfigMap, name: pre-b, fieldPath: data.y}, targets: [{select: {name: a}, fieldPaths: ['data.*']}]}\n"), false, "could grow without a bound"},
		"growing vars": {with(long+"configurations: [c.yaml]", "long.yaml", configMap("long", strings.Repeat("$(X)", 1000)), "c.yaml", "varReference: [{path: data}]"),
			false, "its vars have 1000000 places"},
		"vars in many objects": {with(long+"commonAnnotations: {x: '"+strings.Repeat("$(X)", 3000)+"'}", "long.yaml", strings.Repeat(configMap("long", "1")+"---\n", 40)), false, "its vars have"},
		"hidden vars in a patch": {with(long+"patches: [{target: {kind: ConfigMap}, patch: '[{op: add, path: /data/x, value: \""+strings.Repeat(`\x24(X)`, 5000)+"\"}]'}]",
			"long.yaml", strings.Repeat(configMap("long", "1")+"---\n", 40)), false, "its vars have"},
		"vars in a field twice": {with(long+"configurations: [c.yaml, d.yaml]", "long.yaml", configMap("long", "1"), "c.yaml", "varReference: [{path: data, kind: ConfigMap}]",
			"d.yaml", "varReference: [{path: data/x}]"), false, "the varReferences data and data/x"},
		"vars in a field that is written oddly": {with(long+"configurations: [c.yaml]", "long.yaml", configMap("long", "1"), "c.yaml", `varReference: [{path: 'da\ta'}]`), false, "which is no path"},
		"aliases in a base":                     {with("resources: [b.yaml]", "b.yaml", bomb), false, "more than 10000 values"},
		"aliases in plain":                      {files{"a.yaml": bomb}, true, "more than 10000 values"},
		"aliases of a long text":                {files{"a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\na: &a " + strings.Repeat("x", 10_000) + "\nb: [" + strings.Repeat("*a,", 1000) + "]\n"}, true, "its YAML is too large"},
		"aliases of a long text in documents":   {files{"a.yaml": strings.Repeat("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\na: &a "+strings.Repeat("x", 10_000)+"\nb: ["+strings.Repeat("*a,", 20)+"]\n---\n", 20)}, true, "its YAML is too large"},
		"aliases of a long text in a patch": {with("resources: [a.yaml]\npatches: [{target: {kind: ConfigMap}, patch: '[{op: add, path: /data/x, value: &a " + strings.Repeat("x", 100_000) + "}, " +
			"{op: add, path: /data/y, value: [" + strings.Repeat("*a,", 1000) + "]}]'}]"), false, "a patch: its YAML is too large"},
		"alias in itself":     {files{"a.yaml": "a: &a [*a]\n"}, true, "an alias stands for what it is in"},
		"deep nesting":        {files{"a.yaml": strings.Repeat("[", 5000) + strings.Repeat("]", 5000)}, true, "a.yaml: "},
		"too many objects":    {files{"a.yaml": strings.Repeat(configMap("a", "1")+"---\n", 51)}, true, "more than 50 objects"},
		"too many bytes":      {files{"a.yaml": configMap("a", strings.Repeat("x", 2<<20))}, true, "more than 1048576 bytes"},
		"no manifest":         {files{"a.txt": "x", "sub/a.yaml": configMap("a", "1")}, true, "there is no manifest in the folder"},
		"no YAML":             {files{"a.yaml": "a: b: c"}, true, "a.yaml: it is no YAML"},
		"no object":           {files{"a.yaml": "- x"}, true, "a.yaml: it is no object"},
		"a name twice":        {files{"a.yaml": configMap("a", "1"), "b.yaml": configMap("a", "2")}, true, "is there twice, the other one is in a.yaml"},
		"a key twice":         {files{"a.yaml": configMap("a", "1") + "data: {}\n"}, true, `key "data" already set`},
		"no name":             {files{"a.yaml": "apiVersion: v1\nkind: Pod\nmetadata: {generateName: x}"}, true, "generateName does not do"},
		"a kustomization":     {with("resources: [a.yaml]\napiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization"), true, "spec.kustomize"},
		"two kustomizations":  {with("resources: [a.yaml]", "kustomization.yml", "resources: [a.yaml]"), false, "needs one of the files"},
		"labels of booleans":  {files{"a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, annotations: {b: c, x: true}}"}, true, `a.yaml: ConfigMap a: metadata.annotations is no map of texts: put quotes around the value of "x", the boolean true`},
		"labels of numbers":   {files{"a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, labels: {x: 1}}"}, true, "metadata.labels is no map of texts"},
		"a folder that isn't": {files{}, false, "needs one of the files"},
	} {
		t.Run(name, func(t *testing.T) {
			options := []option{}
			if !row.plain {
				options = append(options, kustomize("."))
			}
			s := k.service(row.files, options...)
			_, err := k.carrier.Compute(t.Context(), k.cluster, k.cluster.client, s)
			if err == nil || !framework.IsPermanent(err) || !strings.Contains(err.Error(), row.want) || !strings.HasPrefix(err.Error(), "template web-1: ") {
				t.Errorf("the error is %v, want %q", err, row.want)
			}
			if err != nil && len(err.Error()) > 2000 {
				t.Errorf("the error has %d characters", len(err.Error()))
			}
		})
	}
	if asked.Load() > 0 {
		t.Error("something was fetched")
	}
}

func TestReferencesThatWouldGrowAreRefused(t *testing.T) {
	k := newKitWith(t, manifest.Config{Limits: manifest.Limits{Bytes: 1 << 20, Nodes: 10_000}})
	long := values("{v: " + strings.Repeat("x", 64<<10) + "}")
	tree := values("{v: {list: [" + strings.TrimSuffix(strings.Repeat("1,", 1000), ",") + "]}}")
	keys := values("{v: {" + strings.Repeat("k", 1000) + ": 1, " + strings.Repeat("l", 1000) + ": 1}}")
	many := func(field string) files {
		return files{"a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: " + field + "\n"}
	}
	objects := files{}
	for i := range 100 {
		objects[fmt.Sprintf("%d.yaml", i)] = configMap(fmt.Sprintf("a%d", i), "${v}")
	}
	list := func(reference string) string { return "[" + strings.Repeat("'"+reference+"',", 1000) + "]" }
	for name, row := range map[string]struct {
		files files
		given option
		want  string
	}{
		"within a text":     {many("{text: '" + strings.Repeat("${v}", 1000) + "'}"), long, "${v}: it has more than 1048576 bytes"},
		"alone in fields":   {many(list("${v}")), long, "${v}: it has more than 1048576 bytes"},
		"as a text":         {many(list("${v:string}")), long, "${v}: it has more than 1048576 bytes"},
		"a tree":            {many(list("${v}")), tree, "${v}: it has more than 10000 values"},
		"a tree with a key": {many(list("${v}")), keys, "${v}: it has more than 1048576 bytes"},
		"in many objects":   {objects, long, "${v}: it has more than 1048576 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := k.carrier.Compute(t.Context(), k.cluster, k.cluster.client, k.service(row.files, row.given))
			if !framework.IsPermanent(err) || !strings.Contains(err.Error(), row.want) {
				t.Errorf("the error is %v, want %q", err, row.want)
			}
		})
	}
}

func TestKustomizationsThatWouldGrowAreRefused(t *testing.T) {
	k := newKit(t)
	err := k.refused(k.service(files{
		"kustomization.yaml": "resources: [m.yaml]\ncommonAnnotations: {x: '" + strings.Repeat("x", 300<<10) + "'}",
		"m.yaml":             strings.Repeat("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n---\n", 2000),
	}, kustomize(".")))
	if !strings.Contains(err.Error(), "bytes for 2000 objects") {
		t.Errorf("the error is %v", err)
	}
	err = k.refused(k.service(files{
		"kustomization.yaml": "commonAnnotations: {x: '" + strings.Repeat("x", 300<<10) + "'}\nconfigMapGenerator:\n" +
			strings.Repeat("- {name: a}\n", 2000),
	}, kustomize(".")))
	if !strings.Contains(err.Error(), "bytes for 2000 objects") {
		t.Errorf("the error for generated objects is %v", err)
	}
}
