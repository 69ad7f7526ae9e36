package statemanagers

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/informer/pollinformer"
	"github.com/operatorkit/operatorkit/internal/cut"
	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/internal/statuses"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// ProvidersName is the name of the framework that minds the StateManagementProviders. Its objects are the state managers of
// the configuration, which are there also while their StateManagementProvider is not.
const ProvidersName = "statemanagers"

// ProviderLabel is the label, with the name of the provider as its value, by which a StateManagementProvider selects that this
// operator has created.
const ProviderLabel = "services.operatorkit.io/provider"

// providerKind is that of the StateManagementProviders, which are not the primaries of the framework.
var providerKind = v1alpha1.GroupVersion.WithKind(v1alpha1.StateManagementProviderKind)

// ofProviders returns rights on primaries as those on StateManagementProviders.
func ofProviders(rights []framework.Right) []framework.Right {
	for i := range rights {
		rights[i].Kind = providerKind
	}
	return rights
}

// providers is the logic of the framework for the StateManagementProviders.
type providers struct {
	*sources
	d *operator.Dependencies
	// missing are the names of those that are created if they are missing.
	missing map[string]bool
}

// newProviders makes the framework for the providers with these names, of which some are created if they are missing.
func newProviders(d *operator.Dependencies, s *sources, names []string, missing map[string]bool) (*framework.Framework, error) {
	source, err := pollinformer.New(pollinformer.Config[string]{
		Name: ProvidersName, Logger: d.Logger,
		List: func(context.Context) (map[informer.Key]string, error) {
			all := make(map[informer.Key]string, len(names))
			for _, name := range names {
				all[informer.Key{Name: name}] = name
			}
			return all, nil
		},
	})
	if err != nil {
		return nil, err
	}
	p := &providers{sources: s, d: d, missing: missing}
	provider, err := framework.NewTypedCRUDResource(framework.TypedCRUDResourceConfig[string, *v1alpha1.StateManagementProvider]{Logger: d.Logger, Ops: p})
	if err != nil {
		return nil, err
	}
	status, err := statuses.New(d, p.setStatus, p.tell)
	if err != nil {
		return nil, err
	}
	return d.NewFramework(framework.Config{
		Name: ProvidersName, Source: source, Resources: []framework.Resource{provider, &providerClaim{providers: p}, &providerStatus{s, status}},
		Watches: []framework.Watch{{Source: s.providers, Map: func(_ context.Context, obj any) []informer.Key {
			key := client.ObjectKeyFromObject(obj.(client.Object))
			if _, ours, _ := source.Get(key); !ours {
				return nil
			}
			return []informer.Key{key}
		}}},
	})
}

// Name implements framework.TypedCRUDResourceOps.
func (p *providers) Name() string { return "provider" }

// Rights implements framework.RightsLister. Events on what has no namespace are in the namespace default.
func (p *providers) Rights() []framework.Right {
	event := corev1.SchemeGroupVersion.WithKind("Event")
	rights := []framework.Right{{Kind: event, Namespaces: []string{metav1.NamespaceDefault}, Verbs: []string{"create", "patch"}}}
	for _, created := range p.missing {
		if created {
			return append(rights, framework.Right{Kind: providerKind, Verbs: []string{"create"}})
		}
	}
	return rights
}

// GetCurrentState implements framework.TypedCRUDResourceOps.
func (p *providers) GetCurrentState(ctx context.Context, name string) (*v1alpha1.StateManagementProvider, error) {
	return p.provider(ctx, name)
}

// GetDesiredState implements framework.TypedCRUDResourceOps.
func (p *providers) GetDesiredState(_ context.Context, name string) (*v1alpha1.StateManagementProvider, error) {
	return &v1alpha1.StateManagementProvider{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.StateManagementProviderKind},
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       v1alpha1.StateManagementProviderSpec{Selector: metav1.LabelSelector{MatchLabels: map[string]string{ProviderLabel: name}}},
	}, nil
}

// NewUpdatePatch implements framework.TypedCRUDResourceOps. A provider that exists belongs to people.
func (p *providers) NewUpdatePatch(_ context.Context, name string, current, desired *v1alpha1.StateManagementProvider) (*framework.TypedPatch[*v1alpha1.StateManagementProvider], error) {
	if current != nil || !p.missing[name] {
		return nil, nil
	}
	patch := framework.NewTypedPatch[*v1alpha1.StateManagementProvider]()
	patch.SetCreateChange(desired)
	return patch, nil
}

// NewDeletePatch implements framework.TypedCRUDResourceOps. A provider stays when the operator does not know it any more.
func (p *providers) NewDeletePatch(context.Context, string, *v1alpha1.StateManagementProvider, *v1alpha1.StateManagementProvider) (*framework.TypedPatch[*v1alpha1.StateManagementProvider], error) {
	return nil, nil
}

// ApplyCreateChange implements framework.TypedCRUDResourceOps.
func (p *providers) ApplyCreateChange(ctx context.Context, _ string, provider *v1alpha1.StateManagementProvider) error {
	err := p.d.Client.Create(ctx, provider.DeepCopy())
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// ApplyUpdateChange implements framework.TypedCRUDResourceOps. There is none.
func (p *providers) ApplyUpdateChange(context.Context, string, *v1alpha1.StateManagementProvider) error {
	return nil
}

// ApplyDeleteChange implements framework.TypedCRUDResourceOps. There is none.
func (p *providers) ApplyDeleteChange(context.Context, string, *v1alpha1.StateManagementProvider) error {
	return nil
}

// setStatus makes the status of a provider: whether its state manager can work.
func (p *providers) setStatus(ctx context.Context, provider *v1alpha1.StateManagementProvider) error {
	is, err := p.standing(ctx, provider.Name)
	if err != nil {
		return err
	}
	status := &provider.Status
	status.ObservedGeneration = provider.Generation
	ready := metav1.Condition{
		Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: ReasonRunning, ObservedGeneration: provider.Generation,
		Message: fmt.Sprintf("operator %s carries the service sets out", p.d.Name),
	}
	if is.hold != nil {
		ready.Status, ready.Reason, ready.Message = metav1.ConditionFalse, is.hold.reason, cut.Text(is.hold.message, statuses.MaxMessage)
	}
	status.Conditions = statuses.SetConditions(status.Conditions, []metav1.Condition{ready})
	return nil
}

// tell writes an event when a state manager begins or stops to work.
func (p *providers) tell(ctx context.Context, before, after *v1alpha1.StateManagementProvider) {
	old, now := statuses.Find(before.Status.Conditions, v1alpha1.ConditionReady), statuses.Find(after.Status.Conditions, v1alpha1.ConditionReady)
	if old.Status == now.Status && old.Reason == now.Reason {
		return
	}
	kind := corev1.EventTypeNormal
	if now.Status != metav1.ConditionTrue {
		kind = corev1.EventTypeWarning
	}
	framework.Recorder(ctx, p.d.Recorder).Event(after, kind, now.Reason, now.Message)
}

// providerStatus writes the status of a provider that exists. It gives the object to the resource that does.
type providerStatus struct {
	*sources
	framework.Resource
}

var _ framework.Planner = (*providerStatus)(nil)

// Rights implements framework.RightsLister.
func (s *providerStatus) Rights() []framework.Right {
	return ofProviders(framework.RightsOf(s.Resource))
}

// EnsureCreated implements framework.Resource.
func (s *providerStatus) EnsureCreated(ctx context.Context, obj any) error {
	provider, err := s.provider(ctx, obj.(string))
	if err != nil || provider == nil {
		return err
	}
	return s.Resource.EnsureCreated(ctx, provider.DeepCopy())
}

// EnsureDeleted implements framework.Resource.
func (s *providerStatus) EnsureDeleted(context.Context, any) error { return nil }

// Plan implements framework.Planner.
func (s *providerStatus) Plan(ctx context.Context, event plan.Event, obj any) ([]plan.Change, error) {
	provider, err := s.provider(ctx, obj.(string))
	if err != nil || provider == nil || event != plan.UpdateEvent {
		return nil, err
	}
	p, err := framework.PlanUpdate(ctx, provider.DeepCopy(), []framework.Resource{s.Resource})
	if err != nil {
		return nil, err
	}
	if p.Outcome == plan.Failed {
		return nil, fmt.Errorf("plan the status of StateManagementProvider %s: %s", provider.Name, p.Reason)
	}
	return p.Resources[0].Changes, nil
}
