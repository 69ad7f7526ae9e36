package statusresource

import (
	"context"
	"encoding/json"
	"reflect"
	"time"

	"github.com/giantswarm/micrologger"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer/notfound"
	"github.com/operatorkit/operatorkit/internal/faults"
	"github.com/operatorkit/operatorkit/internal/statusmap"
)

// DefaultName is the name of a resource that is given none.
const DefaultName = "status"

// Config configures a resource for the status of primaries of type O, such as *v1alpha1.Website or *unstructured.Unstructured.
type Config[O client.Object] struct {
	// Name identifies the resource in logs, metrics and errors, and is a part of the field manager. Default: DefaultName.
	Name string
	// FormerNames are names that the resource had before. Default: none.
	FormerNames []string
	// Client writes, and reads primaries that have changed meanwhile. It must read from the API server and not from a cache. Required.
	Client client.Client
	// Logger receives a message for every status that was written. Required.
	Logger micrologger.Logger
	// Prefix is put before Ready, Reconciling and Stalled, and status.observedGeneration is left alone: so a second operator tells of
	// the same objects. Default: none.
	Prefix string
	// Set sets the author's own fields in the status of obj, and says to report how far the object is. It is called after errors too,
	// which report tells, in deletions that go on, for plans, and once more when somebody else has changed the object meanwhile. What it
	// does depends on what is, and not on the time of day: a field that is another one in each reconciliation is written in each. An
	// error is told in the status and is one of the resource, and what Set has set is dropped. Default: there are no other fields.
	Set func(ctx context.Context, obj O, report *Report) error
	// Custom leaves everything to Set: there are no conditions but its own, report is empty, and status.observedGeneration is
	// Set's. The resource runs in its place in the set and not after errors; Set is called in all deletions, and nothing is written
	// after an error of it. It writes as the field manager of the client. Default: false.
	Custom bool
	// Current returns the newest known state of obj, whose status Set is to change. It is for a set that writes a status twice.
	// Default: obj.
	Current func(ctx context.Context, obj O) O
	// Written is called after each write, with the object as it was before and as it is now. Default: nothing happens.
	Written func(ctx context.Context, before, after O)
}

// New returns the resource, or an error for which framework.IsInvalidConfig holds and which lists every fault.
func New[O client.Object](config Config[O]) (framework.Resource, error) {
	var wrong faults.List
	wrong.If(config.Client == nil, "Client must not be nil")
	wrong.If(config.Logger == nil, "Logger must not be nil")
	wrong.If(config.Custom && config.Set == nil, "Set must not be nil when Custom is set")
	wrong.If(config.Custom && config.Prefix != "", "Prefix must be empty when Custom is set, which sets no conditions")
	if !config.Custom {
		missingFields[O](config.Prefix == "", &wrong)
	}
	if err := wrong.Of("statusresource.Config"); err != nil {
		return nil, err
	}
	config.Client = notfound.Checked(config.Client)
	if config.Name == "" {
		config.Name = DefaultName
	}
	if config.Set == nil {
		config.Set = func(context.Context, O, *Report) error { return nil }
	}
	if config.Current == nil {
		config.Current = func(_ context.Context, obj O) O { return obj }
	}
	return framework.NewTypedCRUDResource(framework.TypedCRUDResourceConfig[O, state[O]]{
		Logger: config.Logger, Ops: &resource[O]{config: config, messages: messages{now: time.Now}},
	})
}

// missingFields adds what a status of type O has no place for.
func missingFields[O client.Object](observedGeneration bool, wrong *faults.List) {
	t := reflect.TypeFor[O]()
	if t.Kind() != reflect.Pointer || t == reflect.TypeFor[*unstructured.Unstructured]() {
		return
	}
	obj := reflect.New(t.Elem()).Interface()
	sample := `{"status":{"observedGeneration":1,"conditions":[{"type":"Ready"}]}}`
	if err := json.Unmarshal([]byte(sample), obj); err != nil {
		wrong.Add("the status of a %s has other conditions or another observedGeneration than Kubernetes' own: %s", t, err)
		return
	}
	status, err := statusmap.Of(obj)
	if err != nil {
		wrong.Add("%w", err)
		return
	}
	conditions, _ := statusmap.Conditions(status)
	wrong.If(conditions["Ready"] == nil, "the status of a %s must have Conditions []metav1.Condition `json:\"conditions,omitempty\"`", t)
	wrong.If(observedGeneration && status["observedGeneration"] == nil,
		"the status of a %s must have ObservedGeneration int64 `json:\"observedGeneration,omitempty\"`", t)
}
