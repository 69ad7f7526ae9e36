package machines

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/context/requeuecontext"
	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/internal/statuses"
	"github.com/operatorkit/operatorkit/operator/machines/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/deployment"
	"github.com/operatorkit/operatorkit/resource/deployment/api"
	"github.com/operatorkit/operatorkit/resource/deployment/scheduler"
	"github.com/operatorkit/operatorkit/resource/deploymentresource"
)

// serviceFramework is the logic of the framework for MachineServices.
type serviceFramework struct {
	*sources
	d        *operator.Dependencies
	planned  statuses.Planned
	memo     statuses.Memo[*serviceState]
	failures failures
	doubts   doubts
	metrics  *metrics
	progress func(informer.Key, deployment.ProgressEvent)
	// registrySecret is the name of the Secret for registries.
	registrySecret string
	// registryPeriod is the time between two questions to registries whether a tag has moved.
	registryPeriod time.Duration
}

// serviceState is all about a service, at one moment.
type serviceState struct {
	key     informer.Key
	version v1alpha1.Version
	// work is what there is to do. It is nil when that can't be worked out, with the reason in err.
	work *deploymentresource.Work
	err  error
	// givenUp is the version that failed, if it is the one that is asked for.
	givenUp *v1alpha1.GivenUp
	// failure is why the last try failed, which is not the last one.
	failure string
	// progress says how far the plan is. It is empty before it is carried out.
	progress string
	// note is what else there is to know of a service that works.
	note string
	// waits says which others it waits for.
	waits string
}

func newServices(d *operator.Dependencies, s *sources, config Config) (*framework.Framework, error) {
	f := &serviceFramework{
		sources: s, d: d, planned: statuses.Planned{All: d.PlanOnly}, metrics: newMetrics(s.reader),
		progress: config.Progress, registrySecret: config.RegistrySecret, registryPeriod: config.RegistryPeriod,
	}
	status, err := statuses.New(d, f.setStatus, f.tell)
	if err != nil {
		return nil, err
	}
	containers, err := deploymentresource.New(deploymentresource.Config[*v1alpha1.MachineService]{
		Logger: d.Logger, Compute: f.work, Done: f.done,
		Progress: func(ctx context.Context, svc *v1alpha1.MachineService, e deployment.ProgressEvent) {
			key := client.ObjectKeyFromObject(svc)
			event(ctx, e)
			f.metrics.event(e)
			f.progress(key, e)
		},
	})
	if err != nil {
		return nil, err
	}
	r, err := statuses.Router(d, nil, f.memo, f.compute, s.claims.Resource(), status, framework.WrapSteps(containers, f.supersede))
	if err != nil {
		return nil, err
	}
	if err := f.metrics.register(d.Registry); err != nil {
		return nil, err
	}
	s.services.Subscribe(func(e informer.Event) {
		if svc := e.Object.(*v1alpha1.MachineService); e.Type != informer.Deleted {
			f.rollouts.changed(e.Key, f.versionOf(svc))
		}
		if e.Type == informer.Deleted {
			f.failures.forget(e.Object.(*v1alpha1.MachineService).UID)
			f.doubts.end(e.Key)
			if c, err := f.engines.cluster(e.Key.Namespace); err == nil {
				c.forget(e.Key.Name)
			}
		}
	})
	services, err := d.NewFramework(framework.Config{
		Name: servicesName, Source: s.claims.Source(s.services, ""), ResourceRouter: r, PlanReporter: f.report,
		Rights: []framework.Right{readable(secretKind), readable(configMapKind)},
		Watches: append(f.watchReferences(),
			framework.Watch{Source: s.engines, Map: f.servicesOf}, framework.Watch{Source: s.endpoints, Map: f.servicesBeside},
			framework.Watch{Source: s.readiness, Map: f.dependents}),
	})
	if err != nil {
		return nil, err
	}
	d.Inspector.Draw(services, f.graphs)
	return services, nil
}

// servicesOf is the map function from a notice to the services that it is about.
func (f *serviceFramework) servicesOf(ctx context.Context, obj any) []informer.Key {
	n := obj.(*notice)
	if n.service != "" {
		return []informer.Key{{Namespace: n.machine.Namespace, Name: n.service}}
	}
	return f.servicesThat(ctx, n.machine.Namespace, func(svc *v1alpha1.MachineService) bool {
		return f.doubts.about(client.ObjectKeyFromObject(svc)) || concernedBy(svc, n.machine.Name)
	})
}

// concernedBy tells whether what has happened on a machine as a whole, such as that it is back, is about a service: one that is as it
// should be, and has nothing there, stays as it is. Global ones want one container on each machine.
func concernedBy(svc *v1alpha1.MachineService, machine string) bool {
	ready := meta.FindStatusCondition(svc.Status.Conditions, ConditionReady)
	settled := ready != nil && ready.Status == metav1.ConditionTrue && ready.ObservedGeneration == svc.Generation &&
		!meta.IsStatusConditionTrue(svc.Status.Conditions, ConditionBlocked)
	return svc.DeletionTimestamp != nil || !settled || svc.Spec.Mode == api.ServiceModeGlobal || statusOn(svc, machine) != nil
}

// servicesBeside returns the services of the namespace of a Machine: one that they name may have come.
func (f *serviceFramework) servicesBeside(ctx context.Context, obj any) []informer.Key {
	return f.servicesIn(ctx, obj.(*v1alpha1.Machine).Namespace)
}

// servicesIn returns the services of a namespace. An error of the reader is that the source is not synced: then all are going to be
// reconciled anyway.
func (f *serviceFramework) servicesIn(ctx context.Context, namespace string) []informer.Key {
	return f.servicesThat(ctx, namespace, func(*v1alpha1.MachineService) bool { return true })
}

// servicesThat returns those of servicesIn for which it holds.
func (f *serviceFramework) servicesThat(ctx context.Context, namespace string, holds func(*v1alpha1.MachineService) bool) []informer.Key {
	list := &v1alpha1.MachineServiceList{}
	if err := f.reader.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil
	}
	var keys []informer.Key
	for i := range list.Items {
		if holds(&list.Items[i]) {
			keys = append(keys, client.ObjectKeyFromObject(&list.Items[i]))
		}
	}
	return keys
}

// compute works out what there is to do for a service. What is wrong with its specification is part of that.
func (f *serviceFramework) compute(ctx context.Context, svc *v1alpha1.MachineService) (*serviceState, error) {
	c, err := f.engines.cluster(svc.Namespace)
	if err != nil {
		return nil, err
	}
	service := deploymentresource.Service{Client: &sight{c, svc, f.reader}, Spec: svc.Spec.ServiceSpec, Strategy: strategyOf(&svc.Spec.Strategy)}
	service.Spec.Name = svc.Name
	f.doubts.begin(client.ObjectKeyFromObject(svc))
	// What is read after this is at least as new.
	state := &serviceState{key: client.ObjectKeyFromObject(svc), version: f.versionOf(svc), failure: f.failures.last(svc)}
	if svc.DeletionTimestamp != nil {
		if err := f.knowsAllMachines(ctx, c, svc.Namespace); err != nil {
			return nil, err
		}
		state.work, err = deploymentresource.Removal(ctx, service)
		return state, err
	}
	if service.Spec, err = f.resolve(ctx, svc); err == nil {
		recreate(svc, &service.Spec)
		state.note, err = f.pin(ctx, c, svc, &service.Spec)
	}
	if err == nil {
		if service.Spec.Container.PullPolicy == api.PullAlways {
			state.version.Image = service.Spec.Container.Image
		}
		service.Completed, service.Attempt = completed(svc, state.version), svc.Annotations[v1alpha1.RetryAnnotation]
		state.work, err = planOf(ctx, service, &svc.Spec.Strategy)
	}
	if err != nil {
		if ctx.Err() != nil {
			return nil, err
		}
		var taken *scheduler.LocationError
		if waits(err) || errors.As(err, &taken) {
			c.wait(svc.Name)
		}
		state.err = err
		return state, nil
	}
	if state.givenUp = f.failures.givenUp(svc, state.version); state.givenUp != nil && !state.work.Plan.Empty() {
		state.work.Hold = fmt.Sprintf("given up (%s); it is tried again when the spec, what it names, or the annotation %s changes",
			state.givenUp.Reason, v1alpha1.RetryAnnotation)
		return state, nil
	}
	if state.waits = f.waitsFor(svc, state.version); state.waits != "" && !state.work.Plan.Empty() {
		state.work.Hold = state.waits
		return state, nil
	}
	if wait := f.failures.wait(svc, state.version, &state.work.Plan); wait > 0 && !state.work.Plan.Empty() {
		requeuecontext.SetAfter(ctx, wait)
		state.work.Hold = "a machine lacks what its containers share; it is tried again after a pause"
	}
	return state, nil
}

// recreate makes the request to make containers anew part of what they are.
func recreate(svc *v1alpha1.MachineService, spec *api.ServiceSpec) {
	request := svc.Annotations[v1alpha1.RecreateAnnotation]
	if request == "" {
		return
	}
	labels := map[string]string{v1alpha1.RecreateAnnotation: request}
	maps.Copy(labels, spec.Container.Labels)
	spec.Container.Labels = labels
}

// knowsAllMachines returns an error while the client lacks a Machine that is there: a list of Machines may be old, and a service that has been removed
// from those that it has would leave its containers on the others for ever.
func (f *serviceFramework) knowsAllMachines(ctx context.Context, c *cluster, namespace string) error {
	known, err := c.ListMachines(ctx)
	if err != nil {
		return err
	}
	live := &metav1.PartialObjectMetadataList{}
	live.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("MachineList"))
	if err := f.d.Client.List(ctx, live, client.InNamespace(namespace)); err != nil {
		return fmt.Errorf("look which Machines there are: %w", err)
	}
	for i := range live.Items {
		if name := live.Items[i].Name; !slices.ContainsFunc(known, func(m api.Machine) bool { return m.Name == name }) {
			return fmt.Errorf("machine %s is there, and was not connected to yet: the containers on it can't be removed", name)
		}
	}
	return nil
}

// planOf returns what there is to do. A fault of the specification is permanent: its next change is waited for.
func planOf(ctx context.Context, service deploymentresource.Service, strategy *v1alpha1.Strategy) (*deploymentresource.Work, error) {
	if err := errors.Join(service.Spec.Validate(), checkStrategy(strategy)); err != nil {
		return nil, framework.Permanent(err)
	}
	work, err := deploymentresource.Plan(ctx, service)
	var side *deployment.NotSideBySideError
	if errors.As(err, &side) || errors.Is(err, deployment.ErrNoClusterDomain) {
		err = framework.Permanent(err)
	}
	return work, err
}

// work returns what the resource of containers has to do.
func (f *serviceFramework) work(ctx context.Context, _ *v1alpha1.MachineService) (*deploymentresource.Work, error) {
	state, err := f.memo.Get(ctx)
	if err != nil {
		return nil, err
	}
	return state.work, state.err
}

// done remembers what became of a plan.
func (f *serviceFramework) done(ctx context.Context, svc *v1alpha1.MachineService, work *deploymentresource.Work, err error) {
	state, computed := f.memo.Get(ctx)
	if computed != nil {
		return
	}
	f.failures.note(ctx, svc, state.version, &work.Plan, err)
}

// waits tells whether there is no machine because of plans that are being carried out: what they take may become free again.
func waits(err error) bool {
	var nowhere *scheduler.UnschedulableError
	return errors.As(err, &nowhere) && len(nowhere.Coming) > 0
}

// reasonOf returns the reason of the condition Blocked for what can't be worked out, and false if it may come right by itself.
func reasonOf(err error) (string, bool) {
	var nowhere *scheduler.UnschedulableError
	var unresolved *referenceError
	var taken *scheduler.LocationError
	switch {
	case errors.As(err, &unresolved):
		return ReasonReferencesUnresolved, true
	case framework.IsPermanent(err):
		return ReasonInvalid, true
	case errors.As(err, &nowhere) && !waits(err):
		return ReasonUnschedulable, true
	case errors.Is(err, scheduler.ErrNoIngress):
		return ReasonNoIngress, true
	case errors.As(err, &taken):
		return ReasonLocationTaken, true
	}
	return ReasonRetrying, false
}
