package templating_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager"
	"github.com/operatorkit/operatorkit/resource/statemanager/templating"
)

// setOf is a set of a cluster with some labels.
func setOf(labels map[string]string) *statemanager.Set {
	return &statemanager.Set{
		ServiceSet: &v1alpha1.ServiceSet{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "set"}, Spec: v1alpha1.ServiceSetSpec{Cluster: "prod"}},
		Cluster: &v1alpha1.ClusterDeployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "prod", Labels: labels, Annotations: map[string]string{"owner": "ann"}},
			Spec:       v1alpha1.ClusterDeploymentSpec{Kubeconfig: v1alpha1.KubeconfigReference{SecretName: "keys"}},
		},
		ValueKinds: []schema.GroupVersionKind{{Group: "net.example.com", Version: "v1", Kind: "Network"}},
	}
}

// read returns the ConfigMap team/net, and the Network team/prod.
func read(_ context.Context, ref statemanager.Reference) (map[string]any, error) {
	switch fmt.Sprint(ref.APIVersion, " ", ref.Kind, " ", ref.ObjectKey) {
	case " ConfigMap team/net":
		return map[string]any{"data": map[string]any{"subnet": "10.0.0.0/8"}}, nil
	case "net.example.com/v1 Network team/prod":
		return map[string]any{"status": map[string]any{"zones": []any{"a", "b"}, "gateway": nil}}, nil
	}
	return nil, errors.New("there is no such object")
}

func values(set *statemanager.Set, text string, objects ...v1alpha1.ValuesObject) (string, error) {
	return templating.Values(context.Background(), set, &v1alpha1.ServiceWithValues{
		Namespace: "web", Name: "shop", Values: text, ValuesTemplate: &v1alpha1.ValuesTemplate{Objects: objects},
	}, read)
}

var (
	net     = v1alpha1.ValuesObject{As: "net", Kind: "ConfigMap", Name: "net"}
	network = v1alpha1.ValuesObject{As: "network", APIVersion: "net.example.com/v1", Kind: "Network"}
)

func TestValuesAreMadeOfTheClusterAndOfNamedObjects(t *testing.T) {
	set := setOf(map[string]string{"region": "eu", "topology.kubernetes.io/zone": "eu-1"})
	for text, want := range map[string]string{
		`{{ .Cluster.metadata.namespace }}/{{ .Cluster.metadata.name }}`:                           "team/prod",
		`{{ .Cluster.metadata.labels.region | upper | quote }}`:                                    `"EU"`,
		`{{ index .Cluster.metadata.labels "topology.kubernetes.io/zone" }}`:                       "eu-1",
		`{{ .Cluster.metadata.annotations.owner }}`:                                                "ann",
		`{{ .Cluster.spec.kubeconfig.secretName }}`:                                                "keys",
		`{{ hasKey .Cluster.spec "serviceSpec" }}`:                                                 "false",
		`{{ dig "tier" "standard" .Cluster.metadata.labels }}`:                                     "standard",
		`{{ get .Cluster.metadata.labels "tier" }}`:                                                "",
		`{{ .Objects.net.data.subnet }}`:                                                           "10.0.0.0/8",
		`{{ index .Objects.network.status.zones 1 }}`:                                              "b",
		`{{ range keys .Cluster.metadata.labels }}{{ . }} {{ end }}`:                               "region topology.kubernetes.io/zone ",
		`{{ values .Cluster.metadata.labels | join "," }}`:                                         "eu,eu-1",
		`{{ .Objects.network.status.zones | toYaml }}`:                                             "- a\n- b",
		`{{ (fromYaml "a: {b: c}").a.b }}`:                                                         "c",
		`{{ required "it is needed" .Objects.net.data.subnet }}`:                                   "10.0.0.0/8",
		`{{ define "x" }}<{{ . }}>{{ end }}{{ range untilStep 0 3 1 }}{{ template "x" . }}{{end}}`: "<0><1><2>",
		`{{ "{{ .Values.x }}" }}`:                                                                  "{{ .Values.x }}",
	} {
		if got, err := values(set, text, net, network); err != nil || got != want {
			t.Errorf("%s comes to %q, %v; want %q", text, got, err, want)
		}
	}
	plain := &v1alpha1.ServiceWithValues{Name: "shop", Values: "{{ not a template"}
	if got, err := templating.Values(t.Context(), set, plain, read); err != nil || got != plain.Values {
		t.Errorf("without a valuesTemplate the values are %q, %v", got, err)
	}
	set.Cluster, set.ServiceSet.Spec.Cluster = nil, ""
	if got, err := values(set, `{{ hasKey .Cluster.metadata "name" }} {{ len .Cluster.metadata.labels }}`); err != nil || got != "false 0" {
		t.Errorf("on the management cluster it is %q, %v", got, err)
	}
}

func TestWhatIsMissingIsAnErrorThatNamesItAndTheService(t *testing.T) {
	set := setOf(map[string]string{"region": "eu"})
	secret := v1alpha1.ValuesObject{As: "s", Kind: "Secret", Name: "s"}
	for _, tt := range []struct {
		text      string
		objects   []v1alpha1.ValuesObject
		permanent bool
		want      string
	}{
		{`{{ .Cluster.metadata.labels.tier }}`, nil, true, `no entry for key "tier": add it to the cluster or the object, or read it by `},
		{`{{ .Cluster.metadata.lables.tier }}`, nil, true, `no entry for key "lables"`},
		{`{{ index .Cluster.metadata.labels "example.com/tier" }}`, nil, true, `no entry for key "example.com/tier"`},
		{`{{ if eq .Cluster.metadata.labels.tier "gold" }}x{{ end }}`, nil, true, `no entry for key "tier"`},
		{"\n\n{{ .Objects.net.data.gateway }}", []v1alpha1.ValuesObject{net}, true, `values:3:11: executing "values" at <.Objects.net.data.gateway>: map has no entry for key "gateway"`},
		{`{{ .Objects.other.data }}`, []v1alpha1.ValuesObject{net}, true, `no entry for key "other"`},
		{`{{ .Objects.network.status.gateway }}`, []v1alpha1.ValuesObject{network}, true, "null"},
		{`{{ index .Objects.network.status.zones 2 }}`, []v1alpha1.ValuesObject{network}, true, "there is no element 2 in a list of 2"},
		{`{{ required "a tier is needed" (get .Cluster.metadata.labels "tier") }}`, nil, true, "a tier is needed"},
		{`{{ fromYaml "[" }}`, nil, true, "no YAML map"},
		{`{{ .Cluster`, nil, true, "it can't be read"},
		{``, []v1alpha1.ValuesObject{{As: "x", Kind: "ConfigMap", Name: "absent"}}, false, "its object x: there is no such object"},
		{``, []v1alpha1.ValuesObject{secret}, true, "its object s is a Secret, whose values would be in plans: name the Secret in valuesFrom, with a targetPath"},
		{``, []v1alpha1.ValuesObject{{As: "d", APIVersion: "apps/v1", Kind: "Deployment"}}, true, "the kind Deployment in apps/v1, which the operator does not read"},
	} {
		_, err := values(set, tt.text, tt.objects...)
		if err == nil || framework.IsPermanent(err) != tt.permanent || !strings.Contains(err.Error(), tt.want) ||
			!strings.Contains(err.Error(), "the values template of service web/shop: ") {
			t.Errorf("%s: the error is %v, want %q", tt.text, err, tt.want)
		}
	}
	set.Cluster = nil
	if _, err := values(set, ""); err == nil || !strings.Contains(err.Error(), "ClusterDeployment team/prod does not exist") {
		t.Errorf("without the cluster: %v", err)
	}
	set.ServiceSet.Spec.Cluster = ""
	if _, err := values(set, "", network); err == nil || !strings.Contains(err.Error(), "its object network has no name") {
		t.Errorf("an object with the name of the management cluster: %v", err)
	}
}

func TestATemplateThatDoesNotEndIsRefused(t *testing.T) {
	for text, want := range map[string]string{
		`{{ range 1000000000000 }}{{ end }}`:                                                  "through its loops",
		`{{ range 1000 }}{{ range 1000 }}{{ if true }}{{ end }}{{ end }}{{ end }}`:            "through its loops",
		`{{ define "x" }}{{ template "x" . }}{{ template "x" . }}{{ end }}{{ template "x" }}`: "",
		`{{ range 2000 }}{{ repeat 1000 "x" }}{{ end }}`:                                      "more than 1048576 bytes",

		`{{ $x := repeat 2000000 "x" }}`:                                                               "a text of more than 1048576 bytes",
		`{{ $x := repeat 100000000000 "x" }}`:                                                          "more than 16777216 bytes",
		`{{ $x := indent 100000000000 "x" }}`:                                                          "more than 16777216 bytes",
		`{{ $x := nindent 100000000000 "x" }}`:                                                         "more than 16777216 bytes",
		`{{ $x := until 2000000 }}`:                                                                    "more than 16777216 bytes",
		`{{ $x := until -10000000000 }}`:                                                               "more than 16777216 bytes",
		`{{ $x := untilStep 0 10000000000 1 }}`:                                                        "more than 16777216 bytes",
		`{{ $x := untilStep 9223372036854775800 9223372036854775807 5 }}`:                              "more than 16777216 bytes",
		`{{ $x := seq 10000000000 }}`:                                                                  "more than 16777216 bytes",
		`{{ $x := seq 0 10000000000 }}`:                                                                "more than 16777216 bytes",
		`{{ $x := seq 0 1 10000000000 }}`:                                                              "more than 16777216 bytes",
		`{{ $x := repeat 1000000 "x" }}{{ $x = replace "x" $x $x }}`:                                   "more than 16777216 bytes",
		`{{ $x := repeat 1000000 "x" }}{{ $x = regexReplaceAll "x" $x $x }}`:                           "more than 16777216 bytes",
		`{{ $x := repeat 100000 "x" }}{{ $x = regexReplaceAll "(x+)" $x (repeat 10000 "${1}") }}`:      "more than 16777216 bytes",
		`{{ $x := repeat 1000000 "x" }}{{ $x = mustRegexReplaceAllLiteral "" $x $x }}`:                 "more than 16777216 bytes",
		`{{ $x := repeat 1000000 "x" }}{{ $x = wrapWith 1 $x $x }}`:                                    "more than 16777216 bytes",
		`{{ $x := repeat 1000000 "x" }}{{ $x = join $x (until 1000000) }}`:                             "more than 16777216 bytes",
		`{{ $x := repeat 1000000 "x" }}{{ $x = printf (repeat 100000 "%[1]s") $x }}`:                   "more than 16777216 bytes",
		`{{ $x := printf (repeat 100000 "%999999d") 1 }}`:                                              "more than 16777216 bytes",
		`{{ $x := printf (repeat 100000 "%[1]*d") 999999 }}`:                                           "more than 16777216 bytes",
		`{{ $x := fromYaml (print "a: &a " (repeat 100000 "x") "\nb: [" (repeat 100000 "*a,") "]") }}`: "it has more than 16777216 bytes, with aliases",
		`{{ $x := "x" }}{{ range 22 }}{{ $x = printf "%s%s" $x $x }}{{ end }}`:                         "a text of more than 1048576 bytes",
		`{{ $x := "x" }}{{ range 22 }}{{ $x = print $x $x }}{{ end }}`:                                 "a text of more than 1048576 bytes",
		`{{ $x := "x" }}{{ range 22 }}{{ $x = cat $x $x }}{{ end }}`:                                   "a text of more than 1048576 bytes",
		`{{ $x := list 1 }}{{ range 50 }}{{ $x = list $x $x }}{{ end }}{{ $x }}`:                       "a list or a map of more than 16777216 bytes",
		`{{ $x := dict "a" 1 }}{{ range 50 }}{{ $x = dict "a" $x "b" $x }}{{ end }}{{ toJson $x }}`:    "a list or a map of more than 16777216 bytes",
		`{{ $x := dict }}{{ $y := set $x "x" (list $x) }}{{ $x }}`:                                     "a part of itself",
		`{{ $x := dict }}{{ $y := merge $x (dict "x" $x) }}{{ $x }}`:                                   "a part of itself",
		`{{ $l := list }}{{ range 1000 }}{{ $l = append $l (repeat 1000000 "x") }}{{ end }}`:           "more than",
	} {
		if _, err := values(setOf(nil), text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: the error is %v, want %q", text, err, want)
		}
	}
	// A map grows when something is put into one that is in it.
	const grown = `{{ $r := dict }}{{ $a := $r }}{{ range 22 }}{{ $b := dict }}{{ $_ := set $a "x" $b }}{{ $_ := set $a "y" $b }}{{ $a = $b }}{{ end }}`
	for _, text := range []string{
		strings.Repeat(`{{ range 22 }}{{ $b := dict }}{{ $_ := set $a "x" $b }}{{ $_ := set $a "y" $b }}{{ $a = $b }}{{ end }}`, 2) + `{{ $x := merge $r $r }}`,
		`{{ $r }}`, `{{ if true }}{{ with $r }}{{ range list 1 }}{{ $r }}{{ end }}{{ end }}{{ end }}`, `{{ define "x" }}{{ . }}{{ end }}{{ template "x" $r }}`,
		`{{ $x := toJson $r }}`, `{{ $x := toYaml $r }}`, `{{ $x := toString $r }}`, `{{ $x := print $r }}`, `{{ $x := printf "%v" $r }}`,
		`{{ $x := int $r }}`, `{{ $x := deepCopy $r }}`, `{{ $x := list $r | join "," }}`, `{{ $x := quote 1 $r }}`,
	} {
		if _, err := values(setOf(nil), grown+text); err == nil || !strings.Contains(err.Error(), "a list or a map of more than 16777216 bytes") {
			t.Errorf("%s: the error is %v", text, err)
		}
	}
}

func TestFunctionsMakeWhatTheyMadeWithinTheBounds(t *testing.T) {
	for text, want := range map[string]string{
		`{{ repeat 3 "ab" }} {{ indent 2 "a\nb" }} {{ until 3 }} {{ untilStep 3 0 -1 }} {{ seq 2 5 }}`:                         "ababab   a\n  b [0 1 2] [3 2 1] 2 3 4 5",
		`{{ replace "a" "b" "aa" }} {{ regexReplaceAll "a(x*)b" "-ab-axxb-" "${1}W" }} {{ wrapWith 2 "|" "abcd" }}`:            "bb -W-xxW- ab|cd",
		`{{ printf "%5d|%-3s|%q" 42 "a" "b" }} {{ print 1 "a" }} {{ html "<" }} {{ list 1 "a" nil | join "-" }}`:               `   42|a  |"b" 1a &lt; 1-a`,
		`{{ dict "a" (list 1 2) | toJson }} {{ default "x" "" }} {{ ternary 1 2 true }} {{ merge (dict "a" 1) (dict "b" 2) }}`: `{"a":[1,2]} x 1 map[a:1 b:2]`,
		`{{ $l := list }}{{ range 1000 }}{{ $l = append $l (repeat 100 "x") }}{{ end }}{{ len $l }}`:                           "1000",
		`{{ 1 }} {{ "a" }} {{ true }} {{ list "a" | first }} {{ $x := 2 }}{{ $x = 3 }}{{ $x }} {{ dict "a" (list 1) }}`:        "1 a true a 3 map[a:[1]]",
		`{{ $d := dict "a" 1 }}{{ $e := dict "x" $d "y" $d }}{{ $_ := set $d "b" 2 }}{{ toJson $e }}`:                          `{"x":{"a":1,"b":2},"y":{"a":1,"b":2}}`,
	} {
		if got, err := values(setOf(nil), text); err != nil || got != want {
			t.Errorf("%s: it makes %q, want %q, %v", text, got, want, err)
		}
	}
}

// TestTheSameDataMakesTheSameValues holds for whatever functions there are that go through maps.
func TestTheSameDataMakesTheSameValues(t *testing.T) {
	const text = `{{ $l := .Cluster.metadata.labels }}{{ keys $l }} {{ values $l }} {{ toYaml $l }} {{ toJson $l }} {{ $l }} {{ range $k, $v := $l }}{{ $k }}={{ $v }} {{ end }}` +
		`{{ keys (merge (dict "a" 1 "b" 2) $l) | join "," }} {{ pick $l "a" "b" "c" }} {{ omit $l "a" }} {{ deepCopy $l }}`
	rapid.Check(t, func(rt *rapid.T) {
		set := setOf(rapid.MapOfN(rapid.StringMatching(`[a-z]{1,3}`), rapid.StringMatching(`[a-z]{1,3}`), 0, 12).Draw(rt, "labels"))
		first, err := values(set, text)
		if err != nil {
			rt.Fatal(err)
		}
		for range 5 {
			if again, err := values(set, text); err != nil || again != first {
				rt.Fatalf("it comes to\n%s\nand then, %v, to\n%s", first, err, again)
			}
		}
	})
}
