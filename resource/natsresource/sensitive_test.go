package natsresource_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/informer/natsinformer"
	"github.com/operatorkit/operatorkit/resource/natsresource"
)

func sensitive(c *config) {
	c.Sensitive = func(r *route) bool { return strings.HasPrefix(r.Name, "secret") || r.Name == "a" }
}

func TestValuesOfSensitiveEntriesAreShownNowhere(t *testing.T) {
	k := newKit(t)
	const first, second = "hunter2", "correct-horse"
	want := newRoute("secret", first)
	want.Labels = map[string]string{"tier": "web"}
	want.Annotations = map[string]string{"copy": first}
	want.Conditions = []metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue, Message: first}}
	r := k.resource(just(want), sensitive)

	var everything strings.Builder
	look := func() {
		t.Helper()
		k.catchUp()
		patch, err := k.patch(r, home())
		if err != nil {
			t.Fatal(err)
		}
		current, err := r.GetCurrentState(t.Context(), home())
		if err != nil {
			t.Fatal(err)
		}
		create, _ := patch.CreateChange()
		update, _ := patch.UpdateChange()
		for _, state := range []natsresource.State[*route]{current, create, update} {
			everything.WriteString(text(t, state))
			fmt.Fprintf(&everything, "%v %+v %#v %s", state, state, state, state)
		}
	}
	look()
	k.wantPlan(r, home(), "create secret",
		`  host: (sensitive)`,
		`  metadata.annotations.copy: (sensitive)`,
		`  metadata.conditions[type=Ready].message: (sensitive)`,
		`  metadata.conditions[type=Ready].reason: (sensitive)`,
		`  metadata.conditions[type=Ready].status: (sensitive)`,
		`  metadata.conditions[type=Ready].type: (sensitive)`,
		`  metadata.labels.tier: "web"`)
	k.update(r, home())

	want.Host, want.Labels = second, map[string]string{"tier": "db"}
	look()
	k.wantPlan(r, home(), "update secret",
		`  host: (sensitive, changed)`,
		`  metadata.labels.tier: "web" -> "db"`)
	k.update(r, home())
	look()
	k.catchUp()
	if err := framework.ProcessDelete(t.Context(), home(), []framework.Resource{r}); err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{first, second} {
		if strings.Contains(everything.String()+k.log.String(), secret) {
			t.Errorf("%s is shown:\n%s\n%s", secret, everything.String(), k.log)
		}
	}
	for _, message := range []string{"created an entry", "updated an entry", "deleted an entry", "entry secret of bucket routes", "host"} {
		if !strings.Contains(k.log.String(), message) {
			t.Errorf("the log lacks %q:\n%s", message, k.log)
		}
	}
}

// flat is an entity whose metadata stand among its other fields, one of which has the name of an innocent one.
type flat struct {
	natsinformer.Meta
	Secret string `json:"secret"`
}

func TestOfSensitiveEntriesWithoutAPlaceForMetadataNothingIsShown(t *testing.T) {
	k := newKit(t)
	r, err := natsresource.New(natsresource.Config[*gateway, *flat]{
		Name: "flat", Bucket: newBucket[*flat](t, k.js, "routes"), Source: k.source, Logger: k.logger(), Kind: "Gateway",
		Desired: func(context.Context, *gateway) ([]*flat, error) {
			return []*flat{{Meta: natsinformer.Meta{Name: "x", Labels: map[string]string{"a": "b"}}, Secret: "hunter2"}}, nil
		},
		Sensitive: func(*flat) bool { return true },
	})
	if err != nil {
		t.Fatal(err)
	}
	k.catchUp()
	current, _ := r.GetCurrentState(t.Context(), home())
	desired, err := r.GetDesiredState(t.Context(), home())
	if err != nil {
		t.Fatal(err)
	}
	patch, err := r.NewUpdatePatch(t.Context(), home(), current, desired)
	if err != nil {
		t.Fatal(err)
	}
	state, _ := patch.CreateChange()
	for _, f := range state.Changes()[0].Fields {
		if diff := cmp.Diff(any(plan.Redacted), f.New); diff != "" {
			t.Errorf("%s: %s", f.Path, diff)
		}
	}
}
