package helm

import (
	"context"
	"fmt"
	"time"

	"helm.sh/helm/v4/pkg/release/common"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/internal/faults"
	"github.com/operatorkit/operatorkit/resource/internal/bytelru"
	"github.com/operatorkit/operatorkit/resource/internal/serverside"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
)

// Config bounds what charts can do. The zero value is good for production.
type Config struct {
	// Timeout is for services that set none: of each hook, and until all objects have to be healthy. Default: 5 minutes.
	Timeout time.Duration
	// RenderTimeout bounds how long the templates of a chart may take, and how long they wait for others before that. Default: 30 seconds.
	RenderTimeout time.Duration
	// Renderings is how many charts are rendered at once at most, those that never end included, and half of them from one namespace of the
	// management cluster. Default: 8.
	Renderings int
	// History is how many revisions of a release are kept. Default: 10, as Helm has it.
	History int
	// Remembered is how many bytes are kept in memory of what releases have put onto clusters, to be compared with what is there without
	// reading it again. Releases with the same manifests share what is kept, on whichever clusters they are. Default: 128 MiB.
	Remembered int
	// Clock is for time-outs. Default: the clock of the machine.
	Clock clock.PassiveClock
}

// Carrier is a carrier.Carrier for templates with a Helm chart. It is safe for concurrent use for different services.
type Carrier struct {
	config     Config
	renderings *places
	// revisions are small, and each has the key of what it shares with others.
	revisions *bytelru.Cache[revisionKey, *revision]
	contents  *bytelru.Cache[contentKey, *content]
	verdicts  serverside.Verdicts
}

// rememberedVerdicts is on how many objects a Carrier keeps a verdict.
const rememberedVerdicts = 1 << 16

var _ carrier.Carrier = (*Carrier)(nil)

// New returns a Carrier. The error is for a configuration that can't be.
func New(config Config) (*Carrier, error) {
	var wrong faults.List
	for _, field := range []struct {
		name     string
		value    *int
		fallback int
	}{
		{"Renderings", &config.Renderings, 8}, {"History", &config.History, 10}, {"Remembered", &config.Remembered, 128 << 20},
	} {
		wrong.If(*field.value < 0, "%s is %d: it must not be negative", field.name, *field.value)
		if *field.value == 0 {
			*field.value = field.fallback
		}
	}
	for _, field := range []struct {
		name     string
		value    *time.Duration
		fallback time.Duration
	}{
		{"Timeout", &config.Timeout, 5 * time.Minute}, {"RenderTimeout", &config.RenderTimeout, 30 * time.Second},
	} {
		wrong.If(*field.value < 0, "%s is %s: it must not be negative", field.name, *field.value)
		if *field.value == 0 {
			*field.value = field.fallback
		}
	}
	if config.Clock == nil {
		config.Clock = clock.RealClock{}
	}
	if err := wrong.Of("helm.Config"); err != nil {
		return nil, err
	}
	return &Carrier{
		config: config, renderings: newPlaces(config.Renderings),
		revisions: bytelru.New[revisionKey, *revision](config.Remembered / 8),
		contents:  bytelru.New[contentKey, *content](config.Remembered - config.Remembered/8),
		verdicts:  serverside.NewVerdicts(rememberedVerdicts),
	}, nil
}

// job is one call of the carrier for one service.
type job struct {
	*Carrier
	cluster carrier.Cluster
	client  client.WithWatch
	mapper  meta.RESTMapper
	// live reads what the watches have; reads through client go to the API server.
	live    client.Reader
	service *carrier.Service
	options options
	hider   *carrier.Hider
	// seen are objects as a plan that deletes them has seen them. Each is used once.
	seen map[carrier.Identity]*metav1.PartialObjectMetadata
}

func (c *Carrier) job(cluster carrier.Cluster, live client.Reader, service *carrier.Service) *job {
	return &job{
		Carrier: c, cluster: cluster, client: cluster.Client(), mapper: cluster.RESTMapper(), live: live,
		service: service, options: c.optionsOf(service), hider: carrier.NewHider(service.Values, service.Secret),
	}
}

func (j *job) now() time.Time { return j.config.Clock.Now() }

// Compute implements carrier.Carrier.
func (c *Carrier) Compute(ctx context.Context, cluster carrier.Cluster, live client.Reader, service *carrier.Service) (*carrier.Result, error) {
	j := c.job(cluster, live, service)
	result, err := j.compute(ctx)
	if result == nil {
		return nil, j.hider.Error(err)
	}
	shown := j.hider.Result(result)
	return &shown, j.hider.Error(err)
}

func (j *job) compute(ctx context.Context) (*carrier.Result, error) {
	revisions, err := recordsOf(ctx, j.client, j.service.Key)
	if err != nil {
		return nil, err
	}
	if !j.wanted() {
		return j.removal(ctx, revisions)
	}
	latest := revisions.latest()
	switch {
	case latest == nil:
		return j.renewal(ctx, revisions)
	case !j.has(latest):
		unclaimed := j.service.ClaimOn(latest.labels) == carrier.Unclaimed
		if j.options.replace && latest.status == common.StatusUninstalled && unclaimed {
			return j.renewal(ctx, revisions)
		}
		if j.adopts(latest) {
			return j.adoption(ctx, revisions)
		}
		return nil, j.foreign(revisions)
	case latest.status.IsPending() && !latest.made() && j.config.Clock.Since(latest.begun) < j.options.timeout:
		return j.otherHelm(latest), nil
	case j.isUnderway(latest):
		return j.underway(ctx, revisions)
	case j.takesBack(latest):
		return j.refused(ctx, revisions)
	case latest.stands() && j.service.Put(latest.annotations[fingerprintAnnotation]):
		return j.standing(ctx, revisions)
	case latest.stands() && j.service.Config.SyncMode == v1alpha1.SyncModeOneTime:
		result, err := j.standing(ctx, revisions)
		if err == nil {
			result.Notes = append(result.Notes, "it stays as it was put there, because the sync mode is OneTime")
		}
		return result, err
	}
	return j.renewal(ctx, revisions)
}

// wanted tells whether the release should be there.
func (j *job) wanted() bool {
	return j.service.Entry != nil && j.service.Entry.HelmAction != v1alpha1.HelmActionUninstall
}

// has tells whether a release is the service's, as its own or to be taken over.
func (j *job) has(latest *record) bool {
	claim := j.service.ClaimOn(latest.labels)
	return claim == carrier.Own || claim == carrier.Inherited
}

// inherits tells whether a release is to be taken over, from another service set, from a former name, or from a service set of the same
// name that is another one.
func (j *job) inherits(latest *record) bool {
	claim, uid := j.service.ClaimOn(latest.labels), latest.annotations[ownerUIDAnnotation]
	return claim == carrier.Inherited || claim == carrier.Own && uid != "" && uid != string(j.service.Owner.UID)
}

// foreign is the error for a release that is somebody else's.
func (j *job) foreign(revisions records) error {
	latest := revisions.latest()
	if j.service.ClaimOn(latest.labels) == carrier.Foreign {
		return fmt.Errorf("there is a Helm release %s already that belongs to %s: give the service another name or namespace, or take it "+
			"away there: %w", j.service.Key, revisions.whose(), carrier.ErrConflict)
	}
	return fmt.Errorf("there is a Helm release %s already that is not from a service set (status %s): "+
		"take it over with adopt, uninstall it with `helm uninstall -n %s %s`, or give the service another name or namespace: %w",
		j.service.Key, latest.status, j.service.Key.Namespace, j.service.Key.Name, carrier.ErrConflict)
}

// found tells what the latest revision says of the service.
func (j *job) found(latest *record) *carrier.Found {
	return latest.found(j.service.Owner.Keeper).Opened(j.service)
}

// otherHelm waits for somebody's helm command.
func (j *job) otherHelm(latest *record) *carrier.Result {
	message := fmt.Sprintf("waits for somebody else's helm, which has revision %d in %s", latest.revision, latest.status)
	return &carrier.Result{
		Found: j.found(latest), Notes: []string{message}, Requeue: j.options.timeout - j.config.Clock.Since(latest.begun),
		Health: carrier.Health{Phase: v1alpha1.ServiceStateProvisioning, Message: message},
	}
}
