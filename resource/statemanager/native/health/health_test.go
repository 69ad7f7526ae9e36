package health_test

import (
	"strings"
	"testing"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/health"
)

func objectOf(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	encoded, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{}
	if err := utiljson.Unmarshal(encoded, &u.Object); err != nil {
		t.Fatal(err)
	}
	return u
}

func TestExpressionsTellHowAnObjectIs(t *testing.T) {
	compiled, err := health.New().Compile([]v1alpha1.HealthCheckExpr{{
		APIVersion: "example.com/v1", Kind: "Shop",
		InProgress: "has(status.phase) && status.phase == 'Opening'",
		Failed:     "has(status.conditions) && status.conditions.exists(c, c.type == 'Broken' && c.status == 'True')",
		Current:    "status.open >= spec.doors && metadata.name.startsWith('sh')",
	}})
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		object, says string
		want         status.Status
	}{
		"current":                      {"status: {open: 2}", "healthCheckExprs[0].current is true", status.CurrentStatus},
		"not current":                  {"status: {open: 1}", "healthCheckExprs[0].current is not true: status.open >=", status.InProgressStatus},
		"in progress comes first":      {"status: {open: 2, phase: Opening, conditions: [{type: Broken, status: 'True'}]}", "inProgress is true", status.InProgressStatus},
		"failed comes next":            {"status: {open: 2, conditions: [{type: Broken, status: 'True'}]}", "failed is true", status.FailedStatus},
		"without a field of it":        {"status: {}", "healthCheckExprs[0].current can't be answered: no such key: open", status.UnknownStatus},
		"without a status":             {"", "can't be answered: no such key: open", status.UnknownStatus},
		"with another type":            {"status: {open: wide}", "current can't be answered", status.UnknownStatus},
		"with an older generation":     {"status: {open: 2, observedGeneration: 1}", "its generation is 2, and the observed one is 1", status.InProgressStatus},
		"with the observed generation": {"status: {open: 2, observedGeneration: 2}", "is true", status.CurrentStatus},
	} {
		object := objectOf(t, "{apiVersion: example.com/v1, kind: Shop, metadata: {name: shop, generation: 2}, spec: {doors: 2}}")
		object.Object["status"] = objectOf(t, tt.object).Object["status"]
		if tt.object == "" {
			delete(object.Object, "status")
		}
		got := compiled(object)
		if got == nil || got.Status != tt.want || !strings.Contains(got.Message, tt.says) {
			t.Errorf("%s: it is %+v, want %s and %q", name, got, tt.want, tt.says)
		}
	}
	if got := compiled(objectOf(t, "{apiVersion: example.com/v2, kind: Shop}")); got != nil {
		t.Errorf("of another version it is %+v", got)
	}
}

func TestAnAnswerThatIsNeitherTrueNorFalseIsUnknown(t *testing.T) {
	compiled, err := health.New().Compile([]v1alpha1.HealthCheckExpr{{APIVersion: "example.com/v1", Kind: "Shop", Failed: "status.failed", Current: "true"}})
	if err != nil {
		t.Fatal(err)
	}
	for answer, want := range map[string]status.Status{"'no'": status.UnknownStatus, "0": status.UnknownStatus, "false": status.CurrentStatus, "true": status.FailedStatus} {
		got := compiled(objectOf(t, "{apiVersion: example.com/v1, kind: Shop, metadata: {name: shop}, status: {failed: "+answer+"}}"))
		if got.Status != want || want == status.UnknownStatus && !strings.Contains(got.Message, "healthCheckExprs[0].failed is neither true nor false: status.failed") {
			t.Errorf("for %s it is %+v, want %s", answer, got, want)
		}
	}
}

func TestBadExpressionsAreRefusedWithTheirPlace(t *testing.T) {
	good := v1alpha1.HealthCheckExpr{APIVersion: "v1", Kind: "Secret", Current: "true"}
	for want, bad := range map[string]v1alpha1.HealthCheckExpr{
		"healthCheckExprs[1].current: it is no expression: ERROR: <input>:1:8":                {APIVersion: "v1", Kind: "Shop", Current: "status."},
		"healthCheckExprs[1].current: it is of the type int: it has to be true or false":      {APIVersion: "v1", Kind: "Shop", Current: "1 + 1"},
		"healthCheckExprs[1].failed: it is no expression: ERROR: <input>:1:1: undeclared ref": {APIVersion: "v1", Kind: "Shop", Current: "true", Failed: "object.x"},
		"healthCheckExprs[1].current: it is no expression":                                    {APIVersion: "v1", Kind: "Shop"},
		"healthCheckExprs[1]: Secret of v1 is there twice":                                    good,
	} {
		_, err := health.New().Compile([]v1alpha1.HealthCheckExpr{good, bad})
		if !framework.IsPermanent(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, and the error is %v", want, err)
		}
	}
}

func TestWhatAnExpressionCostsIsBounded(t *testing.T) {
	compiled, err := health.New().Compile([]v1alpha1.HealthCheckExpr{{
		APIVersion: "v1", Kind: "Shop", Current: "data.all(a, data.all(b, data.all(c, data.all(d, data[a] == data[d]))))",
	}})
	if err != nil {
		t.Fatal(err)
	}
	data := map[string]any{}
	for _, a := range "abcdefghijklmnopqrstuvwxyz" {
		for _, b := range "abcd" {
			data[string(a)+string(b)] = "x"
		}
	}
	got := compiled(&unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Shop", "data": data}})
	if got.Status != status.UnknownStatus || !strings.Contains(got.Message, "cost") {
		t.Errorf("it is %+v", got)
	}
}

func TestAnExpressionThatMakesTooMuchIsNotAnswered(t *testing.T) {
	long := strings.Repeat("x", 100_000)
	object := objectOf(t, "{apiVersion: example.com/v1, kind: Shop, metadata: {name: shop}, data: {x: "+long+", list: [a"+strings.Repeat(", a", 1000)+"], number: 3}}")
	for expression, want := range map[string]string{
		`data.x.replace('x', data.x) == ''`:                                       "can't be answered: it makes a text of more than 4194304 bytes",
		`data.x.replace('x', data.x, 1000) == ''`:                                 "can't be answered: it makes a text of more than 4194304 bytes",
		`data.x.replace('', data.x) == ''`:                                        "can't be answered: it makes a text of more than 4194304 bytes",
		`data.list.join(data.x) == ''`:                                            "can't be answered: it makes a text of more than 4194304 bytes",
		`data.list.map(i, data.x).join() == ''`:                                   "can't be answered: it makes a text of more than 4194304 bytes",
		`'%s'.format([data.list.map(i, data.x)]) == ''`:                           "can't be answered: it makes a text of more than 4194304 bytes",
		`'%s'.format([{'a': data.list.map(i, {'b': data.x})}]) == ''`:             "can't be answered: it makes a text of more than 4194304 bytes",
		"[['']]" + strings.Repeat(".map(a, a + a)", 40) + "[0].join() == ''":      "can't be answered: it makes a list of more than 4194304 bytes",
		"[[]]" + strings.Repeat(".map(a, [a, a])", 40) + ".flatten(40) == []":     "can't be answered: it makes a list of more than 4194304 bytes",
		"[[]]" + strings.Repeat(".map(a, [a, a])", 40) + ".flatten().size() == 2": "can't be answered: it makes a list of more than 4194304 bytes",
		`data.list.map(i, data.x + data.x).size() == 0`:                           "can't be answered: operation cancelled: actual cost limit exceeded",
		`data.list.map(i, data.x.reverse()).size() == 0`:                          "can't be answered: operation cancelled: actual cost limit exceeded",
		`data.list.map(i, bytes(data.x)).size() == 0`:                             "can't be answered: operation cancelled: actual cost limit exceeded",
		`data.list.map(i, '%s'.format([data.x])).size() == 0`:                     "can't be answered: operation cancelled: actual cost limit exceeded",
		`lists.range(20000).map(i, [data.list].flatten()).size() == 0`:            "can't be answered: operation cancelled: actual cost limit exceeded",
		`'%s-%d'.format(['a', 1]) == 'a-1'`:                                       "is true",
		`[1, [2, [3]]].flatten(2) == [1, 2, 3] && [[1], [2]].flatten() == [1, 2]`: "is true",
		`data.list.map(i, i + i).size() == 1001 && data.x + data.x != ''`:         "is true",
		`'aab'.replace('a', 'c') == 'ccb'`:                                        "is true",
		`'aab'.replace('a', 'c', 1) == 'cab'`:                                     "is true",
		`['a', 'b'].join('-') == 'a-b' && [].join('-') == ''`:                     "is true",
		`['a', 'b'].join() == 'ab'`:                                               "is true",
		`[data.number].join('-') == ''`:                                           "can't be answered: no such overload",
	} {
		compiled, err := health.New().Compile([]v1alpha1.HealthCheckExpr{{APIVersion: "example.com/v1", Kind: "Shop", Current: expression}})
		if err != nil {
			t.Fatal(err)
		}
		if got := compiled(object); !strings.Contains(got.Message, want) {
			t.Errorf("%s: it is %s: %s", expression, got.Status, got.Message)
		}
	}
}
