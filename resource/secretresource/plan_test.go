package secretresource_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/giantswarm/micrologger"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/operator/operatortest/plantest"
	"github.com/operatorkit/operatorkit/resource/secretresource"
)

// The plan is what is written then: hundreds of random states, each on top of the one before. And R14: no value of a Secret
// is in a plan, in none of its forms.
func TestThePlanIsWhatIsDoneThenWithoutItsValues(t *testing.T) {
	server := operatortest.Start(t)
	namespace := server.Namespace(t)
	cfg := server.RESTConfig()
	user := operatortest.NewClient(t, cfg, nil)
	faults := operatortest.NewFaults()
	c := operatortest.NewClient(t, faults.Wrap(cfg), nil)
	logger, err := micrologger.New(micrologger.Config{IOWriter: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	world := &plantest.Cluster{
		Client: user, Faults: faults, Namespace: namespace, Kinds: []client.Object{&corev1.Secret{}},
		Defaulted: map[string][]string{"Secret": {"type"}},
	}
	primary := &corev1.Namespace{}
	if err := user.Get(t.Context(), client.ObjectKey{Name: namespace}, primary); err != nil {
		t.Fatal(err)
	}

	names := rapid.SampledFrom([]string{"a", "b", "c"})
	// Each value can be told from all that a plan may show, also in part and encoded.
	values := rapid.StringMatching(`hunter2-[a-z]{6}-correct-horse`)
	text := rapid.MapOfN(rapid.SampledFrom([]string{"password", "tls.key"}), values, 0, 2)
	data := rapid.MapOfN(rapid.SampledFrom([]string{"password", "token"}), rapid.Map(values, func(s string) []byte { return []byte(s) }), 0, 2)
	seen := plan.Counts{}
	run := 0
	rapid.Check(t, func(rt *rapid.T) {
		run++
		var desired []*corev1.Secret
		r, err := secretresource.New(config{
			Name: "tokens", Client: c, Logger: logger,
			Desired: func(context.Context, *corev1.Namespace) ([]*corev1.Secret, error) { return desired, nil },
		})
		if err != nil {
			rt.Fatal(err)
		}
		for range rapid.IntRange(1, 10).Draw(rt, "rounds") {
			desired = nil
			for _, name := range rapid.SliceOfNDistinct(names, 0, 3, rapid.ID[string]).Draw(rt, "names") {
				desired = append(desired, &corev1.Secret{
					ObjectMeta: metav1.ObjectMeta{
						Namespace: namespace, Name: fmt.Sprintf("r%d-%s", run, name),
						Annotations: map[string]string{"example.com/copy": values.Draw(rt, "annotation")},
					},
					StringData: text.Draw(rt, "text"), Data: data.Draw(rt, "data"),
				})
			}
			if drifting := names.Draw(rt, "drifting"); rapid.Bool().Draw(rt, "drifts") {
				secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("r%d-%s", run, drifting)}}
				drift := client.RawPatch("application/merge-patch+json", []byte(`{"stringData":{"password":"hunter2-drifted"}}`))
				if err := client.IgnoreNotFound(user.Patch(rt.Context(), secret, drift)); err != nil {
					rt.Fatal(err)
				}
			}
			p := plantest.Update(rt, world, primary, r)
			seen = seen.Add(p.Counts())
			wantNoValue(rt, p)
		}
		p := plantest.Delete(rt, world, primary, r)
		seen = seen.Add(p.Counts())
		wantNoValue(rt, p)
	})
	t.Logf("%d sequences: %s", run, seen)
	if !testing.Short() && (seen.Create == 0 || seen.Update == 0 || seen.Delete == 0) { // a sample need not have them all
		t.Error("the states were not various enough to prove anything")
	}
}

// wantNoValue looks for the values in every form that a plan can be seen in.
func wantNoValue(t *rapid.T, p *plan.Plan) {
	t.Helper()
	var shown bytes.Buffer
	plans := []*plan.Plan{p}
	if err := plan.WriteText(&shown, plans, plan.TextOptions{Color: true, MaxValue: -1, MaxLines: -1}); err != nil {
		t.Fatal(err)
	}
	if err := plan.WriteJSON(&shown, plans); err != nil {
		t.Fatal(err)
	}
	shown.WriteString(plan.Difference(p, nil))
	fmt.Fprintf(&shown, "%v\n%+v\n%#v\n%#v\n%+v", p, *p, *p, p.Resources, p.Resources)
	encoded := base64.StdEncoding.EncodeToString([]byte("hunter2-"))[:10]
	for _, value := range []string{"hunter2", "correct-horse", encoded, strings.Trim(fmt.Sprintf("%d", []byte("hunter2")), "[]")} {
		if strings.Contains(shown.String(), value) {
			t.Errorf("%q is in a plan:\n%s", value, shown.String())
		}
	}
}
