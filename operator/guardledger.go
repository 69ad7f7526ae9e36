package operator

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/identity"
	"github.com/operatorkit/operatorkit/informer/notfound"
	"github.com/operatorkit/operatorkit/internal/access"
	"github.com/operatorkit/operatorkit/internal/ledger"
	"github.com/operatorkit/operatorkit/operator/internal/record"
)

const (
	// guardsKey is the key of what is charged to the limits of guards.
	guardsKey = "guards"
	// chargeTimeout limits one charge. Workers wait for it.
	chargeTimeout = 30 * time.Second
	// contention is the pause after other replicas have charged at the same time too often.
	contention = time.Second
)

// guardLedger counts what the limits of guards allow, in the ConfigMap that replicas share.
type guardLedger struct {
	// mu lets one worker charge at a time: others would only cause conflicts.
	mu    sync.Mutex
	books record.Record[ledger.Book]
}

// Charge implements access.Ledger.
func (l *guardLedger) Charge(ctx context.Context, c ledger.Charge) (answer ledger.Answer, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, chargeTimeout)
	defer cancel()
	_, err = l.books.Change(ctx, func(book *ledger.Book) error {
		if *book == nil {
			*book = ledger.Book{}
		}
		var changed bool
		if answer, changed = book.Charge(c, time.Now()); !changed {
			return record.ErrUnchanged
		}
		return nil
	})
	if apierrors.IsConflict(err) {
		return ledger.Answer{Allowed: answer.Allowed, After: contention}, nil
	}
	return answer, err
}

// hasLimits reports whether a guard of a framework has a limit.
func hasLimits(frameworks []*framework.Framework) bool {
	return slices.ContainsFunc(frameworks, func(f *framework.Framework) bool {
		return f != nil && access.EngineOf(f).HasLimits()
	})
}

// StateName returns the name of the ConfigMap with the state that the replicas of an operator share.
// lease is the name of the lease, which defaults to that of the operator.
func StateName(operator, lease string) string {
	return cmp.Or(lease, identity.LeaseName(operator)) + "-state"
}

// stateName is the name of the ConfigMap that replicas share.
func (c *Config) stateName() string { return StateName(c.Name, c.LeaderElection.Name) }

func (c *Config) stateNamespace() string {
	return cmp.Or(c.StateNamespace, c.LeaderElection.Namespace)
}

// ShareLimits makes the limits of guards count in the ConfigMap that the replicas of the operator
// share. New does so, too. It is for programs that apply plans beside the operator
// (framework.ApplyPlan). It sends no request.
func (c Config) ShareLimits() error { return c.shareLimits(nil) }

func (c *Config) shareLimits(httpClient *http.Client) error {
	if !hasLimits(c.Frameworks) {
		return nil
	}
	books, err := c.guardBooks(httpClient)
	if err != nil {
		return err
	}
	shared := &guardLedger{books: books}
	for _, f := range c.Frameworks {
		access.EngineOf(f).ChargeBy(shared)
	}
	return nil
}

// stateClient returns a client for the ConfigMap that replicas share. A nil httpClient is made.
func stateClient(config *rest.Config, httpClient *http.Client) (client.Client, error) {
	c, err := client.New(config, client.Options{HTTPClient: httpClient})
	if err != nil {
		return nil, fmt.Errorf("make the client for the state that replicas share: %w", err)
	}
	return notfound.Checked(c), nil
}

// guardBooks returns what is charged to the limits of guards. A nil httpClient is made.
func (c *Config) guardBooks(httpClient *http.Client) (books record.Record[ledger.Book], err error) {
	books = record.Record[ledger.Book]{Namespace: c.stateNamespace(), Name: c.stateName(), Key: guardsKey}
	books.Client, err = stateClient(c.RESTConfig, httpClient)
	return books, err
}

// ResumeGuards forgives what was charged to the limit of a guard, or to those of all guards if its
// name is empty. What it holds continues within a minute, up to the limit again. It returns the
// names of the guards that had charges. Of config only Name, RESTConfig, StateNamespace and
// LeaderElection are used.
func ResumeGuards(ctx context.Context, config Config, guard string) (resumed []string, err error) {
	books, err := config.guardBooks(nil)
	if err != nil {
		return nil, err
	}
	_, err = books.Change(ctx, func(book *ledger.Book) error {
		if resumed = book.Forgive(guard); len(resumed) == 0 {
			return record.ErrUnchanged
		}
		return nil
	})
	return resumed, err
}

// stateRights are the rights on the ConfigMap that replicas share.
func (c *Config) stateRights() []rbacv1.PolicyRule {
	if !hasLimits(c.Frameworks) && !c.Upgrade.enabled() {
		return nil
	}
	maps := rbacv1.PolicyRule{APIGroups: []string{corev1.GroupName}, Resources: []string{"configmaps"}}
	create, keep := maps, maps
	create.Verbs, keep.Verbs, keep.ResourceNames = []string{"create"}, []string{"get", "update"}, []string{c.stateName()}
	return []rbacv1.PolicyRule{create, keep}
}
