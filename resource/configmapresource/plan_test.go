package configmapresource_test

import (
	"context"
	"fmt"
	"io"
	"testing"

	"github.com/giantswarm/micrologger"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/operator/operatortest/plantest"
	"github.com/operatorkit/operatorkit/resource/configmapresource"
)

// The plan is what is written then: hundreds of random states, each on top of the one before.
func TestThePlanIsWhatIsDoneThen(t *testing.T) {
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
	world := &plantest.Cluster{Client: user, Faults: faults, Namespace: namespace, Kinds: []client.Object{&corev1.ConfigMap{}}}
	primary := &corev1.Namespace{}
	if err := user.Get(t.Context(), client.ObjectKey{Name: namespace}, primary); err != nil {
		t.Fatal(err)
	}

	names := rapid.SampledFrom([]string{"a", "b", "c", "d"})
	// What comes again is short: a longer value of a sensitive ConfigMap would be hidden in the plan of another one, too.
	values := rapid.OneOf(
		rapid.SampledFrom([]string{"", "1", "a\nb\n"}),
		rapid.StringOfN(rapid.RuneFrom([]rune("aZ0 .:-#{}[]\"'\\<>&%\n\täß漢🙂\u202e")), 0, 20, 80),
	)
	data := rapid.MapOfN(rapid.SampledFrom([]string{"x", "y.html", "Z_1"}), values, 0, 3)
	binary := rapid.MapOfN(rapid.SampledFrom([]string{"bin", "raw"}), rapid.SliceOfN(rapid.Byte(), 0, 5), 0, 2)
	seen := plan.Counts{}
	run := 0
	rapid.Check(t, func(rt *rapid.T) {
		run++
		var desired []*corev1.ConfigMap
		r, err := configmapresource.New(config{
			Name: "pages", Client: c, Logger: logger,
			Desired:   func(context.Context, *corev1.Namespace) ([]*corev1.ConfigMap, error) { return desired, nil },
			Sensitive: func(cm *corev1.ConfigMap) bool { return cm.Labels["secret"] != "" },
		})
		if err != nil {
			rt.Fatal(err)
		}
		for range rapid.IntRange(1, 10).Draw(rt, "rounds") {
			desired = nil
			for _, name := range rapid.SliceOfNDistinct(names, 0, 4, rapid.ID[string]).Draw(rt, "names") {
				cm := &corev1.ConfigMap{
					ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("r%d-%s", run, name)},
					Data:       data.Draw(rt, "data"), BinaryData: binary.Draw(rt, "binary data"),
				}
				if rapid.Bool().Draw(rt, "sensitive") {
					cm.Labels = map[string]string{"secret": "yes"}
				}
				desired = append(desired, cm)
			}
			if drifting := names.Draw(rt, "drifting"); rapid.Bool().Draw(rt, "drifts") {
				cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("r%d-%s", run, drifting)}}
				drift := client.RawPatch("application/merge-patch+json", []byte(`{"data":{"x":"drifted"},"binaryData":null}`))
				if err := client.IgnoreNotFound(user.Patch(rt.Context(), cm, drift)); err != nil {
					rt.Fatal(err)
				}
			}
			seen = seen.Add(plantest.Update(rt, world, primary, r).Counts())
		}
		seen = seen.Add(plantest.Delete(rt, world, primary, r).Counts())
	})
	t.Logf("%d sequences: %s", run, seen)
	if !testing.Short() && (seen.Create == 0 || seen.Update == 0 || seen.Delete == 0) { // a sample need not have them all
		t.Error("the states were not various enough to prove anything")
	}
}
