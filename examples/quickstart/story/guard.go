package story

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/examples/internal/demo"
	"github.com/operatorkit/operatorkit/examples/quickstart"
	"github.com/operatorkit/operatorkit/examples/quickstart/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statusresource"
)

// guards tells of a Website whose page a guard keeps as it is.
func guards(ctx context.Context, d *demo.Demo) error {
	d.Step("freezing blog by a label that a guard looks at, and changing its text")
	frozen := website(d.Namespace, "blog", "Blog", "Second post!")
	frozen.Labels[quickstart.FrozenLabel] = "true"
	if err := d.Plan(ctx, frozen); err != nil {
		return err
	}
	patch := func(label, text string) error {
		change := fmt.Sprintf(`{"metadata":{"labels":{%q:%s}},"spec":{"text":%q}}`, quickstart.FrozenLabel, label, text)
		return d.Client.Patch(ctx, frozen, client.RawPatch("application/merge-patch+json", []byte(change)))
	}
	if err := patch(`"true"`, "Second post!"); err != nil {
		return err
	}
	if err := d.Until(ctx, "the guard denies the change, and its status says so", denied(d, "blog")); err != nil {
		return err
	}
	d.Step("taking the label away")
	if err := patch("null", "Second post!"); err != nil {
		return err
	}
	return d.Until(ctx, "its page says the new text", pageSays(d, "blog", "Second post!"))
}

// denied tells whether the status of a website says that a guard denies its change, and its page is as it was.
func denied(d *demo.Demo, name string) func(context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) {
		site := &v1alpha1.Website{}
		if err := d.Client.Get(ctx, client.ObjectKey{Namespace: d.Namespace, Name: name}, site); err != nil {
			return false, err
		}
		ready := meta.FindStatusCondition(site.Status.Conditions, statusresource.ConditionReady)
		if ready == nil || !strings.Contains(ready.Message, "frozen") {
			return false, nil
		}
		return pageSays(d, name, "First post!")(ctx)
	}
}
