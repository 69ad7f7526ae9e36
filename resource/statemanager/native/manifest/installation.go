package manifest

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/resource/internal/serverside"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
)

// again is after how long to look again at what nothing tells of, such as a namespace that is going.
const again = 5 * time.Second

// step is one write to an object.
type step struct {
	action plan.Action
	object objectReference
	// manifest is what is applied. It has no object where nothing is applied.
	manifest manifest
	// later tells that the object can't be tried out before its definition or its namespace is there.
	later bool
	// replace tells that the object can't be changed, and is deleted and created anew.
	replace bool
	// shared is set for an object that others may make at the same time.
	shared bool
	// force takes fields from other field managers.
	force bool
	// managers are the former names of the field manager, whose fields it takes over.
	managers []string
	// adopts tells that an object of somebody else gets the marks of the service, and nothing else, and from are the field managers who
	// have written it.
	adopts bool
	from   []carrier.FieldManager
	// refused says why the step may not be carried out, if that is so.
	refused error
	// uid and version are those of the object that there is.
	uid     types.UID
	version string
	fields  []plan.FieldChange
	reason  string
}

// change is the step as a plan shows it.
func (s step) change() plan.Change {
	object := s.object.planned()
	if s.action != plan.Create {
		object.UID, object.Version = s.uid, s.version
	}
	return plan.Change{Action: s.action, Object: object, Fields: s.fields, Description: s.reason}
}

func changesOf(steps []step) []plan.Change {
	var changes []plan.Change
	for _, s := range steps {
		if s.replace {
			old := s
			old.action, old.fields, old.reason = plan.Delete, nil, plan.Replaced+"it can't be changed"
			changes = append(changes, old.change())
			s.action = plan.Create
		}
		changes = append(changes, s.change())
	}
	return changes
}

// installation is what has to be done to put a service onto a cluster.
type installation struct {
	steps []step
	// prunes are the steps for what is not part of the service any more, and outdated is what is deleted later.
	prunes   []step
	outdated []objectReference
	// early is how many of the steps come before the inventory is written: those for its namespace.
	early int
	// manifests are all that the service has, and packed is what the inventory keeps of them.
	manifests []manifest
	packed    []byte
	record    record
	// objects are those of the service, and sensitive those of which the cluster may have values that must not be shown.
	objects   []objectReference
	sensitive map[carrier.Identity]bool
	// begin tells that the inventory has to be written before the objects are.
	begin bool
	// adopts tells that objects of others are taken over as they are. All else is done then.
	adopts bool
	have   *inventory
}

func (c *Carrier) computeInstallation(
	ctx context.Context, cluster carrier.Cluster, live client.Reader, service *carrier.Service, have *inventory,
) (*carrier.Result, error) {
	result := &carrier.Result{Found: have.found(service)}
	result.Health.Phase = v1alpha1.ServiceStateProvisioning
	applied := have.complete() && service.Put(have.Fingerprint)
	settled := applied && have.isOf(service.Owner)
	var done []string
	if have.complete() {
		differing, finished, err := c.observe(ctx, cluster, live, service, have, settled, result)
		if err != nil {
			return result, err
		}
		done = finished
		if settled {
			if err := c.repair(ctx, cluster, service, have, differing, done, result); err != nil {
				return result, err
			}
			return result, c.computePruning(ctx, cluster, service, have, done, result)
		}
	}
	record := recordOf(service, have)
	once := service.Config.SyncMode == v1alpha1.SyncModeOneTime && have.complete()
	if once {
		result.Notes = append(result.Notes, "it stays as it is, because the sync mode is OneTime")
		if have.isOf(service.Owner) {
			return result, c.computePruning(ctx, cluster, service, have, done, result)
		}
	}
	// What has a new owner, or one of another name, is taken over as it is: what else has to change comes afterwards.
	asItIs := once || have.complete() && have.renamed(service)
	if asItIs {
		record.Type, record.Template, record.Version, record.Fingerprint = have.Type, have.Template, have.Version, have.Fingerprint
	}
	var manifests []manifest
	var err error
	if applied || asItIs {
		manifests, err = have.manifests()
	} else {
		manifests, err = c.render(ctx, service)
	}
	if err != nil {
		return result, err
	}
	return result, c.install(ctx, cluster, service, have, manifests, record, result)
}

// install works out how a service gets onto a cluster.
func (c *Carrier) install(
	ctx context.Context, cluster carrier.Cluster, service *carrier.Service, have *inventory, manifests []manifest, r record, result *carrier.Result,
) error {
	manifests, err := prepare(cluster, service, manifests)
	if err != nil {
		return err
	}
	if missing := missingKinds(cluster, manifests); len(missing) > 0 {
		result.Missing = missing
		result.Health = carrier.Health{Phase: v1alpha1.ServiceStateProvisioning, Message: fmt.Sprintf(
			"waits for the kind %s of %s: the cluster has no such kind", missing[0].Kind, missing[0].GroupVersion())}
		return nil
	}
	todo := &installation{manifests: manifests, record: r, have: have, sensitive: have.sensitive()}
	if todo.packed, err = pack(manifests); err != nil {
		return framework.Permanent(err)
	}
	for _, m := range manifests {
		object := referTo(m.Object)
		object.Sensitive = m.Sensitive
		todo.objects = append(todo.objects, object)
	}
	if err := todo.checkSize(); err != nil {
		return framework.Permanent(err)
	}
	waits, err := c.planNamespace(ctx, cluster, service, todo)
	if err != nil {
		return err
	}
	before, err := fieldsBefore(have)
	if err != nil {
		return err
	}
	var faults []error
	var adopted []step
	pending := map[schema.GroupKind]bool{}
	for _, m := range manifests {
		s, wait, err := c.planObject(ctx, cluster, service, m, before, todo.sensitive[carrier.IdentityOf(m.Object)], pending[groupKind(m.Object)])
		done := s.action == plan.Create && c.done(m, have, r.Fingerprint, before)
		if s.action == plan.Create && !done {
			err = tryOut(ctx, cluster, service, &s, pending[groupKind(m.Object)])
		}
		if s.action != "" && groupKind(m.Object) == carrier.DefinitionKind {
			pending[carrier.DefinedBy(m.Object)] = true
		}
		switch {
		case err != nil:
			faults = append(faults, err)
		case s.adopts:
			adopted = append(adopted, s)
			if wait != "" {
				result.Notes = append(result.Notes, wait)
			}
		case wait != "":
			waits = append(waits, wait)
		case done:
			todo.record.Done = append(todo.record.Done, s.object.String())
		case s.action == plan.Create && m.isNamespace(service.Key.Namespace):
			todo.steps = slices.Insert(todo.steps, 0, s)
			todo.early = 1
		case s.action != "":
			todo.steps = append(todo.steps, s)
		}
	}
	if len(faults) > 0 {
		return join(faults)
	}
	if len(waits) > 0 {
		result.Notes = append(result.Notes, waits...)
		result.Health = carrier.Health{Phase: v1alpha1.ServiceStateProvisioning, Message: waits[0]}
		result.Requeue = again
		return nil
	}
	if len(adopted) > 0 {
		todo.steps, todo.adopts = append(todo.steps[:todo.early], adopted...), true
		todo.begin = !todo.begun(service.Owner)
		result.Changes, result.Payload = changesOf(todo.steps), todo
		return nil
	}
	if have != nil && !have.isOf(service.Owner) {
		result.Notes = append(result.Notes, "it is taken over from "+carrier.Whose(have.secret))
	}
	if have != nil {
		if err := c.planPruning(ctx, cluster, service, todo, result); err != nil {
			return err
		}
	}
	todo.begin = todo.writesObjects() && !todo.begun(service.Owner)
	result.Changes, result.Payload = todo.changes(service), todo
	return nil
}

// changes are those of all steps, or that of the inventory if there are none.
func (i *installation) changes(service *carrier.Service) []plan.Change {
	if changes := changesOf(slices.Concat(i.steps, i.prunes)); len(changes) > 0 {
		return changes
	}
	return []plan.Change{i.bookkeeping(service)}
}

// done tells whether an object that is not there is a Job that has run as it is wanted, and was taken away then.
func (c *Carrier) done(m manifest, have *inventory, fingerprint string, before map[carrier.Identity]manifest) bool {
	if !have.complete() || !c.vanished(m, have) {
		return false
	}
	last, known := before[carrier.IdentityOf(m.Object)]
	return known && (have.Fingerprint == fingerprint || equality.Semantic.DeepEqual(last.Object, m.Object))
}

// vanished tells whether an object of an inventory that is not there is a Job that has finished and was taken away then.
func (c *Carrier) vanished(m manifest, have *inventory) bool {
	return slices.Contains(have.Done, referTo(m.Object).String()) || carrier.Vanished(m.Object, have.since(c.config.Clock.Now()))
}

// writesObjects tells whether anything is written that the inventory has to know of.
func (i *installation) writesObjects() bool { return len(i.steps)+len(i.prunes) > 0 }

// begun tells whether the inventory says already that this is being done.
func (i *installation) begun(owner carrier.Owner) bool {
	if i.have == nil || i.have.Complete || i.have.Fingerprint != i.record.Fingerprint || !i.have.isOf(owner) {
		return false
	}
	return !slices.ContainsFunc(i.objects, func(r objectReference) bool { return !i.have.has(r) })
}

// bookkeeping is the change of a service of which nothing changes but what is known of it.
func (i *installation) bookkeeping(service *carrier.Service) plan.Change {
	change := plan.Change{Action: plan.Create, Description: fmt.Sprintf("record template %s", i.record.Template), Object: plan.Object{
		APIVersion: "v1", Kind: "Secret", Namespace: service.Key.Namespace, Name: InventoryPrefix + service.Key.Name,
	}}
	if i.have != nil {
		change.Action = plan.Update
		if !i.have.isOf(service.Owner) {
			change.Description += ", taken over from " + carrier.Whose(i.have.secret)
		}
		change.Object.UID, change.Object.Version = i.have.secret.UID, i.have.secret.ResourceVersion
	}
	return change
}

// planNamespace adds the creation of the namespace of the service, if it is missing and not among the manifests. It returns
// what has to be waited for.
func (c *Carrier) planNamespace(ctx context.Context, cluster carrier.Cluster, service *carrier.Service, todo *installation) ([]string, error) {
	name := service.Key.Namespace
	if slices.ContainsFunc(todo.manifests, func(m manifest) bool { return m.isNamespace(name) }) {
		return nil, nil
	}
	namespace := &unstructured.Unstructured{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	namespace.SetName(name)
	// It stays when the service goes, so it has no label of the service.
	namespace.SetLabels(map[string]string{"app.kubernetes.io/managed-by": "operatorkit"})
	found, err := getMetadata(ctx, cluster, referTo(namespace))
	if apierrors.IsForbidden(err) && service.Account != nil {
		return nil, nil // A tenant need not see his namespace: if it is not there, what goes into it is refused.
	}
	if err != nil {
		return nil, err
	}
	switch {
	case found == nil:
		m := manifest{File: "the service", Object: namespace}
		todo.steps = append(todo.steps, step{
			action: plan.Create, object: referTo(namespace), manifest: m, shared: true, fields: m.created(),
		})
		todo.early = 1
	case found.DeletionTimestamp != nil:
		return []string{fmt.Sprintf("the namespace %s is being deleted: it is waited for, and made anew", name)}, nil
	}
	return nil, nil
}

func (m manifest) isNamespace(name string) bool {
	return isNamespace(groupKind(m.Object)) && m.Object.GetName() == name
}

// fieldsBefore are the manifests that were put onto a cluster last, if all of them were.
func fieldsBefore(have *inventory) (map[carrier.Identity]manifest, error) {
	if !have.complete() {
		return nil, nil
	}
	manifests, err := have.manifests()
	if err != nil {
		return nil, err
	}
	before := make(map[carrier.Identity]manifest, len(manifests))
	for _, m := range manifests {
		before[carrier.IdentityOf(m.Object)] = m
	}
	return before, nil
}

// planObject returns the step for an object, one without an action where there is nothing to do, and what has to be waited
// for, or comes after a step that adopts. Sensitive tells that the object may have values which must not be shown, and pending that its
// definition changes before.
func (c *Carrier) planObject(
	ctx context.Context, cluster carrier.Cluster, service *carrier.Service, m manifest, before map[carrier.Identity]manifest, sensitive, pending bool,
) (s step, wait string, err error) {
	s = step{object: referTo(m.Object), manifest: m}
	stored := s.object
	if pending {
		if served, err := carrier.Served(cluster.RESTMapper(), stored.gvk()); err == nil {
			stored.APIVersion = served.GroupVersion().String()
		}
	}
	have, err := get(ctx, cluster.Client(), stored)
	if err != nil {
		return step{}, "", err
	}
	if have == nil {
		s.action, s.fields = plan.Create, m.created()
		return s, "", nil
	}
	m.Sensitive = m.Sensitive || sensitive
	s.manifest = m
	if have.GetDeletionTimestamp() != nil {
		return step{}, fmt.Sprintf("%s is being deleted: it is waited for, and made anew%s", s.object, holders(have)), nil
	}
	own := service.Has(have.GetLabels())
	if !own && service.Entry.Adopt && adoptable(have) {
		return planAdoption(ctx, cluster, service, have, m, pending)
	}
	if !own {
		if owner := ownerOf(have); owner != "" {
			return step{}, "", framework.Permanent(&RefusedError{Object: m.String(), Owner: owner})
		}
	}
	last, known := before[carrier.IdentityOf(m.Object)]
	if own && known && sameFields(last.Object.Object, m.Object.Object) && serverside.Covers(have.Object, m.beside(service, have).Object.Object) {
		return step{}, "", nil
	}
	force := own && !service.Config.StopOnConflict
	if own && service.ClaimOn(have.GetLabels()) == carrier.Inherited {
		s.reason = "taken over from " + carrier.Whose(have)
		s.managers = carrier.Managers(service.Former)
	}
	s.force = force
	// Fields of a former name are no conflict: they are moved before the object is applied.
	now, fields, err := difference(ctx, cluster, service, have, m, force || len(s.managers) > 0)
	if pending && carrier.AwaitsDefinition(err) {
		now, err = have, nil
		fields = m.hide(plan.Diff(serverside.Stable(have.Object), serverside.Stable(carrier.Merged(have.Object, m.beside(service, have).Object.Object))))
		s.afterDefinition()
	}
	switch {
	case own && carrier.Replaceable(err) && service.Config.Replaces(groupKind(m.Object)):
		if err := carrier.Creatable(ctx, cluster.Client(), m.Object); err != nil {
			return step{}, "", fault("replace", m, err)
		}
		s.action, s.fields, s.uid, s.version, s.replace = plan.Update, m.created(), have.GetUID(), have.GetResourceVersion(), true
	case err != nil:
		return step{}, "", err
	case now == nil:
		s.action, s.fields = plan.Create, m.created()
	case len(fields) > 0:
		s.action, s.fields, s.uid, s.version = plan.Update, fields, now.GetUID(), now.GetResourceVersion()
		s.manifest = m.beside(service, now)
	}
	return s, "", nil
}
