package story

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/examples/internal/demo"
	"github.com/operatorkit/operatorkit/resource/serviceset"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// tell tells the story.
func (w *world) tell(ctx context.Context, _ *demo.Demo) error {
	for _, chapter := range []func(context.Context) error{w.layers, w.adoption, w.upgrade, w.breakage, w.repair, w.drift, w.removal} {
		if err := chapter(ctx); err != nil {
			return err
		}
	}
	return w.list()
}

func (w *world) layers(ctx context.Context) error {
	w.Step("five services in three layers, for all clusters with the label stage=prod")
	began := time.Now()
	if err := w.comesUp(ctx, began, "certificates 1.0.0", "policies 1.0.0", "gateway 2.0.0", "dashboards 1.0.0", "shop 3.0.0"); err != nil {
		return err
	}
	if err := w.holds(ctx, "each layer was there before the next, as the releases on the clusters tell", layersInOrder); err != nil {
		return err
	}
	return w.holds(ctx, "one value for all clusters: shop.{{ .Cluster.metadata.name }}.example.com is shop.eu… on eu, shop.us… on us", servesShop)
}

// adoption takes over a release that Helm has installed on one of the clusters.
func (w *world) adoption(ctx context.Context) error {
	w.Step("docs, the sixth, which somebody has installed on eu with Helm: there it is taken over as it is")
	eu := w.clusters[0]
	template := &v1alpha1.ServiceTemplate{}
	if err := w.Client.Get(ctx, client.ObjectKey{Namespace: w.Namespace, Name: w.docs.Template}, template); err != nil {
		return err
	}
	if err := eu.install(ctx, w.docs, *template.Spec.Helm, w.native.Fetch); err != nil {
		return err
	}
	before, err := eu.docs(ctx)
	if err != nil {
		return err
	}
	if err := w.planAdoption(ctx, eu.name); err != nil {
		return err
	}
	began := time.Now()
	err = w.change(ctx, func(services []v1alpha1.Service) []v1alpha1.Service { return append(services, w.docs) })
	if err != nil {
		return err
	}
	if err := w.comesUp(ctx, began, "docs 3.0.0"); err != nil {
		return err
	}
	return w.Until(ctx, "eu: docs is still revision 1, and nothing was made anew", func(ctx context.Context) (bool, error) {
		after, err := eu.docs(ctx)
		return slices.Equal(before, after), errors.Join(err, eu.shows("docs: 3.0.0 deployed"))
	})
}

func (w *world) upgrade(ctx context.Context) error {
	w.Step("certificates from 1.0.0 to 1.2.0: its chain leads over 1.1.0")
	if err := w.planStep(ctx, "eu", "certificates", "certificates-1-1-0"); err != nil {
		return err
	}
	began := time.Now()
	if err := w.want(ctx, map[string]string{"certificates": "certificates-1-2-0"}); err != nil {
		return err
	}
	if err := w.comesUp(ctx, began, "certificates 1.1.0", "certificates 1.2.0"); err != nil {
		return err
	}
	return w.holds(ctx, "no other release was touched", func(_ context.Context, c *cluster) error {
		return c.shows("certificates: 1.0.0 superseded, 1.1.0 superseded, 1.2.0 deployed",
			"gateway: 2.0.0 deployed", "shop: 3.0.0 deployed", "docs: 3.0.0 deployed")
	})
}

func (w *world) breakage(ctx context.Context) error {
	w.Step("gateway 2.1.0, which is broken, and 3.1.0 of shop and docs, which depend on it")
	if err := w.want(ctx, map[string]string{"gateway": "gateway-2-1-0", "shop": "web-3-1-0", "docs": "web-3-1-0"}); err != nil {
		return err
	}
	for _, c := range w.clusters {
		err := w.Wait(ctx, "gateway 2.1.0 has failed on "+c.name, func(context.Context) (bool, error) {
			gateway := w.progress.state(c.name, "gateway")
			return gateway.State == v1alpha1.ServiceStateFailed && gateway.Version == "2.1.0", nil
		})
		if err != nil {
			return err
		}
	}
	if err := w.blocked(ctx); err != nil {
		return err
	}
	return w.holds(ctx, "gateway 2.0.0 serves on, shop and docs are untouched", func(ctx context.Context, c *cluster) error {
		if err := c.shows("shop: 3.0.0 deployed", "docs: 3.0.0 deployed"); err != nil {
			return err
		}
		return c.servesGateway(ctx, 2)
	})
}

func (w *world) repair(ctx context.Context) error {
	w.Step("gateway 2.1.1, which is repaired")
	began := time.Now()
	if err := w.want(ctx, map[string]string{"gateway": "gateway-2-1-1"}); err != nil {
		return err
	}
	if err := w.comesUp(ctx, began, "gateway 2.1.1", "shop 3.1.0", "docs 3.1.0"); err != nil {
		return err
	}
	return w.holds(ctx, "the gateway serves with its new port", func(ctx context.Context, c *cluster) error { return c.servesGateway(ctx, 3) })
}

func (w *world) drift(ctx context.Context) error {
	w.Step("somebody leads the service shop astray on eu, deletes the service docs on us, and changes the quota there")
	eu, us := w.clusters[0], w.clusters[1]
	shop := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: "shop"}}
	docs := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: "docs"}}
	if err := us.get(ctx, docs); err != nil {
		return err
	}
	if err := eu.client.Patch(ctx, shop, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"selector":{"app":"evil"}}}`))); err != nil {
		return err
	}
	if err := us.client.Delete(ctx, docs.DeepCopy()); err != nil {
		return err
	}
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: "size"}}
	edit := `{"spec":{"hard":{"pods":"200","services":"5"}}}`
	if err := us.client.Patch(ctx, quota, client.RawPatch("application/merge-patch+json", []byte(edit))); err != nil {
		return err
	}
	err := w.Until(ctx, "eu: shop leads to where it should", func(ctx context.Context) (bool, error) {
		err := eu.get(ctx, shop)
		return shop.Spec.Selector["app"] == "shop", err
	})
	if err != nil {
		return err
	}
	err = w.Until(ctx, "us: docs is there again", func(ctx context.Context) (bool, error) {
		again := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: "docs"}}
		err := us.get(ctx, again)
		return err == nil && again.UID != docs.UID, client.IgnoreNotFound(err)
	})
	if err != nil {
		return err
	}
	return w.Until(ctx, "us: the quota allows 20 services again, and 200 pods still, because policies ignores that difference", func(ctx context.Context) (bool, error) {
		err := us.get(ctx, quota)
		if pods := quota.Spec.Hard[corev1.ResourcePods]; pods.Value() != 200 {
			err = errors.Join(err, fmt.Errorf("the quota on us allows %s pods, want 200", pods.String()))
		}
		services := quota.Spec.Hard[corev1.ResourceServices]
		return services.Value() == 20, err
	})
}

func (w *world) removal(ctx context.Context) error {
	w.Step("removing docs and the dashboards, on which it depends")
	began := time.Now()
	err := w.change(ctx, func(services []v1alpha1.Service) []v1alpha1.Service {
		return slices.DeleteFunc(services, func(s v1alpha1.Service) bool { return s.Name == "docs" || s.Name == "dashboards" })
	})
	if err != nil {
		return err
	}
	for _, name := range []string{"docs", "dashboards"} {
		err := w.row(ctx, began, name+" is gone", func(cluster string) (time.Time, bool) { return w.progress.whenGone(cluster, name) })
		if err != nil {
			return err
		}
	}
	return w.holds(ctx, "docs went first, and nothing is left of them", w.goneInOrder)
}

// want changes the templates of services, by their names.
func (w *world) want(ctx context.Context, templates map[string]string) error {
	return w.change(ctx, func(services []v1alpha1.Service) []v1alpha1.Service {
		for i := range services {
			if template, ok := templates[services[i].Name]; ok {
				services[i].Template = template
			}
		}
		return services
	})
}

// change changes the list of services that all clusters should have.
func (w *world) change(ctx context.Context, edit func([]v1alpha1.Service) []v1alpha1.Service) error {
	services := &v1alpha1.MultiClusterService{}
	if err := w.Client.Get(ctx, client.ObjectKey{Name: "platform"}, services); err != nil {
		return err
	}
	before := services.DeepCopy()
	services.Spec.ServiceSpec.Services = edit(services.Spec.ServiceSpec.Services)
	return w.Client.Patch(ctx, services, client.MergeFrom(before))
}

// set reads the ServiceSet of a cluster.
func (w *world) set(ctx context.Context, cluster string) (*v1alpha1.ServiceSet, error) {
	deployment := &v1alpha1.ClusterDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: cluster}}
	services := &v1alpha1.MultiClusterService{ObjectMeta: metav1.ObjectMeta{Name: "platform"}}
	set := &v1alpha1.ServiceSet{}
	return set, w.Client.Get(ctx, serviceset.ObjectKey("", deployment, services), set)
}

// planAdoption shows what the state manager is going to do on a cluster once docs is among its services, without notes, and without the marks
// that objects get. It is an error if anything else would change.
func (w *world) planAdoption(ctx context.Context, cluster string) error {
	set, err := w.set(ctx, cluster)
	if err != nil {
		return err
	}
	set.Spec.Services = append(set.Spec.Services, v1alpha1.ServiceWithValues{
		Namespace: w.docs.Namespace, Name: w.docs.Name, Template: w.docs.Template, Values: w.docs.Values, Adopt: true,
	})
	var more []error
	err = w.PlanLines(ctx, set, func(line string) bool {
		isChange := strings.IndexAny(line, "+~-") == 0
		isMark := isChange && (strings.HasPrefix(line, "+ owner: ") || strings.Contains(line, "services.operatorkit.io/"))
		if isChange && !isMark && !strings.HasSuffix(line, ": taken over as it is") {
			more = append(more, fmt.Errorf("the plan changes more than marks: %s", line))
		}
		return !isMark && !strings.HasPrefix(line, "· ")
	}, "claim", "status", "service-faults")
	return errors.Join(append(more, err)...)
}

// planStep shows what the state manager is going to do on a cluster once a service has another template.
func (w *world) planStep(ctx context.Context, cluster, service, template string) error {
	set, err := w.set(ctx, cluster)
	if err != nil {
		return err
	}
	for i := range set.Spec.Services {
		if s := &set.Spec.Services[i]; s.Name == service {
			s.Template, s.Version = template, ""
		}
	}
	return w.Plan(ctx, set, "claim", "status", "service-faults")
}

// blocked waits until the owner of the services says what holds them up on all clusters, and shows it.
func (w *world) blocked(ctx context.Context) error {
	services := &v1alpha1.MultiClusterService{}
	var message string
	err := w.Wait(ctx, "the MultiClusterService is blocked", func(ctx context.Context) (bool, error) {
		err := w.Client.Get(ctx, client.ObjectKey{Name: "platform"}, services)
		blocked := meta.FindStatusCondition(services.Status.Conditions, v1alpha1.ConditionBlocked)
		if err != nil || blocked == nil || blocked.Status != metav1.ConditionTrue {
			return false, err
		}
		message = blocked.Message
		return !slices.ContainsFunc(w.clusters, func(c *cluster) bool { return !strings.Contains(message, w.Namespace+"/"+c.name) }), nil
	})
	if err != nil {
		return err
	}
	w.Change("!", "multiclusterservice/platform", "is blocked:")
	for _, reason := range strings.Split(message, "; ") {
		w.Note("    " + reason)
	}
	return nil
}
