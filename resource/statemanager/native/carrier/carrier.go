package carrier

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager"
)

// Cluster is where services go. *target.Cluster is one.
type Cluster interface {
	// Client reads and writes without a cache.
	Client() client.WithWatch
	// RESTConfig is for clients of other kinds.
	RESTConfig() *rest.Config
	// RESTMapper knows the kinds that the cluster has now. It is a meta.ResettableRESTMapper.
	RESTMapper() meta.RESTMapper
}

// Service is one service as a cluster should have it. Nothing of it may be changed.
type Service struct {
	// Key is the namespace and the name of the service on the cluster.
	Key client.ObjectKey
	// Owner is the ServiceSet and its keeper.
	Owner Owner
	// Former are the keepers that the keeper was before: what they have put there is taken over as it is.
	Former []Keeper
	// Entry is what the ServiceSet says of it. It is nil when the service is to be taken away.
	Entry *v1alpha1.ServiceWithValues
	// Template is what it is made of. It is nil when the service is to be taken away.
	Template *v1alpha1.ServiceTemplate
	// Source gives what the template names.
	Source Source
	// Values are those of ValuesFrom and Values, merged.
	Values map[string]any
	// Secret are the values that come from Secrets: the same structure as Values, with true for each leaf that must not be
	// shown. Plans and messages hide them.
	Secret map[string]any
	// Fingerprint stands for what is on the cluster: the chart or the files that the template names, the values, and those options that
	// change anything there. What was put there with the same fingerprint need not be put there again, whoever's set it is, and
	// whatever time it is given. It is kept as its Seal only, because values of Secrets could be tried out with it.
	Fingerprint string
	// Attempt stands for the options that only say how the service is put there. What was refused is tried again with another one.
	Attempt string
	// Account is the service account as which the cluster is asked, with the rights of a tenant; nil is the user of its kubeconfig.
	Account *client.ObjectKey
	// Unknown tells that only marks on the cluster say that the service is the owner's, and neither the set nor its status. Who may write
	// Secrets there can forge them: the service is taken away, and nothing that it brings along is run for that.
	Unknown bool
	// HealthCheck tells how objects are of which the entry says it by expressions. Nil is none.
	HealthCheck HealthCheck
	// Config is that of the set.
	Config statemanager.Config
	// Failure is the last failure of CarryOut with this fingerprint, since the operator started. Nil is none.
	Failure *Failure
}

// Failure is why a service could not be carried out.
type Failure struct {
	// Message is the first line that a person needs.
	Message string
	// Time is when it happened last, and Count how often, but for failures that pass without a change of the service (Passing).
	Time  time.Time
	Count int
}

// Result is what Compute found out about one service.
type Result struct {
	// Found is what the cluster has of it. It is nil when there is nothing.
	Found *Found
	// Changes, Notes and Payload are those of the statemanager.Operation. Without changes there is nothing to do.
	Changes []plan.Change
	Notes   []string
	Payload any
	// UnderWay reports that a hook of the operation has begun: the Changes, if there are any, are the rest of it.
	UnderWay bool
	// Drift is how the cluster differs from what was put there, object by object, whether it is put right or not.
	Drift []plan.Change
	// Health tells how the objects are that the cluster has.
	Health Health
	// Missing are kinds that the cluster does not have and that the service waits for. How long it may wait, the state manager knows.
	Missing []schema.GroupVersionKind
	// Requeue is after how long to look again without a change; zero is never.
	Requeue time.Duration
}

// Found is what a cluster has of a service.
type Found struct {
	// Key is the namespace and the name of the service.
	Key client.ObjectKey
	// Owner is the ServiceSet that put it there, as far as it is known.
	Owner Owner
	// Template and Version are those with which it was put there completely, and Seal is that of the fingerprint. They are empty for
	// what was begun and not finished.
	Template, Version, Seal string
	// Fingerprint is that of the service where Seal is a seal of it, and empty otherwise. List does not know it.
	Fingerprint string
	// Type is what it is made of.
	Type v1alpha1.ServiceType
	// Kinds are the kinds of its objects, which are worth watching.
	Kinds []schema.GroupVersionKind
	// Unreadable is why List can't read what the cluster has, of which only the Key and the Type are known then. Compute says so too.
	Unreadable error
}

// Health is how the objects of a service are.
type Health struct {
	// Phase is Deployed when all are as they should be, Provisioning while they are getting there, Failed when they have failed or
	// did not get there in time, and Deleting while they are going.
	Phase v1alpha1.ServicePhase
	// Message is the first line that a person needs: which object, and what it waits for.
	Message string
}

// Carrier puts services of one type onto clusters. It is safe for concurrent use for different services, keeps nothing in
// memory that it can't lose, and starts nothing that has to be stopped.
type Carrier interface {
	// Compute reads and works out what has to be done. live reads objects of the cluster as its watches have them, and
	// asks the cluster where nothing is watched: it is for the objects of services (their health, their drift) and may lag
	// behind; what decides on writes is read through cluster.
	Compute(ctx context.Context, cluster Cluster, live client.Reader, service *Service) (*Result, error)
	// CarryOut does what the Result of a Compute says. It can be repeated after another Compute, wherever it was interrupted,
	// by a crash too. It does not wait for health, and not for hooks: what is only begun is gone on with after another Compute, which
	// tells what it waits for until then.
	CarryOut(ctx context.Context, cluster Cluster, service *Service, result *Result) error
	// List returns what a cluster has of the services of an owner, and of its ServiceSet by former keepers.
	List(ctx context.Context, cluster Cluster, owner Owner, former ...Keeper) ([]Found, error)
}
