package crdclient

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/giantswarm/micrologger"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/internal/faults"
)

// DefaultFieldManager is the field manager for server-side apply when a Config names none.
const DefaultFieldManager = "operatorkit-crd"

var (
	// ErrNamesConflict is in the chain of the error for a definition whose names another one has taken.
	ErrNamesConflict = errors.New("names are taken by another custom resource definition")

	// ErrNotEstablished is in the chain of the error for a definition that was applied, and that the API does not serve yet.
	ErrNotEstablished = errors.New("not established yet")
)

// IsNamesConflict asserts ErrNamesConflict.
func IsNamesConflict(err error) bool { return errors.Is(err, ErrNamesConflict) }

// IsNotEstablished asserts ErrNotEstablished.
func IsNotEstablished(err error) bool { return errors.Is(err, ErrNotEstablished) }

// Config describes a Client.
type Config struct {
	// Client talks to the API server and must be set. Its scheme need not know custom resource definitions. It needs the
	// verbs get, create and patch on customresourcedefinitions.apiextensions.k8s.io.
	Client client.Client
	// FieldManager is the name under which the definitions are applied. Default: [DefaultFieldManager].
	FieldManager string
	// Logger must be set. It is told about attempts that failed.
	Logger micrologger.Logger
}

// Client ensures custom resource definitions. It is safe for concurrent use.
type Client struct{ config Config }

// New returns a Client. The error names each faulty field and wraps [informer.ErrInvalidConfig].
func New(config Config) (*Client, error) {
	var wrong faults.List
	wrong.If(config.Client == nil, "field Client must be set")
	wrong.If(config.Logger == nil, "field Logger must be set")
	if err := wrong.Of("crdclient.Config"); err != nil {
		return nil, err
	}
	if config.FieldManager == "" {
		config.FieldManager = DefaultFieldManager
	}
	return &Client{config: config}, nil
}

// EnsureCreated applies the definition and waits until its objects are served. It tries again as b says, which belongs to
// the call; a nil one stands for backoff.NewExponentialBackOff. The last error is returned when b gives up, and the context's,
// together with the last one, when ctx ends. IsNamesConflict and IsNotEstablished tell why.
func (c *Client) EnsureCreated(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition, b backoff.BackOff) error {
	if crd == nil || crd.Name == "" {
		return fmt.Errorf("ensure custom resource definition: %w: it has no name", informer.ErrInvalidConfig)
	}
	if b == nil {
		b = backoff.NewExponentialBackOff()
	}
	desired, err := applyConfiguration(crd)
	if err != nil {
		return fmt.Errorf("ensure custom resource definition %s: %w", crd.Name, err)
	}

	var last error
	permanent := false
	attempt := func() error {
		err := c.ensure(ctx, desired)
		if ctx.Err() == nil {
			last = err
		}
		if isPermanent(err) {
			permanent = true
			return backoff.Permanent(err)
		}
		return err
	}
	err = backoff.RetryNotify(attempt, backoff.WithContext(b, ctx), func(err error, delay time.Duration) {
		if errors.Is(err, ErrNotEstablished) {
			return
		}
		c.config.Logger.Errorf(ctx, err, "custom resource definition %s is not ensured, next attempt in %s", crd.Name, delay)
	})
	if err == nil {
		return nil
	}
	if ctxErr := ctx.Err(); ctxErr != nil && last != nil && !errors.Is(last, ctxErr) {
		err = fmt.Errorf("%w, last attempt: %w", ctxErr, last)
	}
	err = fmt.Errorf("ensure custom resource definition %s: %w", crd.Name, err)
	if permanent {
		return backoff.Permanent(err)
	}
	return err
}

func (c *Client) ensure(ctx context.Context, desired *unstructured.Unstructured) error {
	applied := desired.DeepCopy()
	err := c.config.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(applied),
		client.FieldOwner(c.config.FieldManager), client.ForceOwnership)
	if err != nil {
		return fmt.Errorf("apply: %w", err)
	}
	return served(applied)
}

// applyConfiguration returns what the author says about the definition, without status and empty fields.
func applyConfiguration(crd *apiextensionsv1.CustomResourceDefinition) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(crd)
	if err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	unstructured.RemoveNestedField(u.Object, "status")
	for _, field := range []string{"creationTimestamp", "generation", "managedFields", "resourceVersion", "uid"} {
		unstructured.RemoveNestedField(u.Object, "metadata", field)
	}
	return u, nil
}

// served returns nil when the API serves the objects of the definition, as its conditions tell.
func served(applied *unstructured.Unstructured) error {
	var crd apiextensionsv1.CustomResourceDefinition
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(applied.Object, &crd); err != nil {
		return fmt.Errorf("decode: %w", err)
	}
	established, accepted := false, false
	for _, condition := range crd.Status.Conditions {
		switch {
		case condition.Type == apiextensionsv1.NamesAccepted && condition.Status == apiextensionsv1.ConditionFalse:
			return fmt.Errorf("%w: %s: %s", ErrNamesConflict, condition.Reason, condition.Message)
		case condition.Type == apiextensionsv1.NamesAccepted:
			accepted = condition.Status == apiextensionsv1.ConditionTrue
		case condition.Type == apiextensionsv1.Established:
			established = condition.Status == apiextensionsv1.ConditionTrue
		}
	}
	if !established || !accepted {
		return ErrNotEstablished
	}
	return nil
}

func isPermanent(err error) bool {
	return errors.Is(err, ErrNamesConflict) || apierrors.IsInvalid(err)
}
