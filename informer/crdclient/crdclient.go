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
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/internal/absent"
	"github.com/operatorkit/operatorkit/internal/faults"
)

// DefaultFieldManager is the field manager for server-side apply when a Config names none.
const DefaultFieldManager = "operatorkit-crd"

var (
	// ErrNamesConflict is in the error chain if another definition already has the names of the
	// given one.
	ErrNamesConflict = errors.New("names are taken by another custom resource definition")

	// ErrNotEstablished is in the error chain if a definition was applied but the API does not
	// serve it yet.
	ErrNotEstablished = errors.New("not established yet")

	// ErrOutdated is in the error chain if a definition is missing or differs from the given one,
	// and can't be written: the Client is read-only or lacks permission, or a newer version of the
	// operator has applied a newer definition.
	ErrOutdated = errors.New("the definition in the cluster does not serve what is wanted")
)

// IsNamesConflict asserts ErrNamesConflict.
func IsNamesConflict(err error) bool { return errors.Is(err, ErrNamesConflict) }

// IsNotEstablished asserts ErrNotEstablished.
func IsNotEstablished(err error) bool { return errors.Is(err, ErrNotEstablished) }

// IsOutdated asserts ErrOutdated.
func IsOutdated(err error) bool { return errors.Is(err, ErrOutdated) }

// Config describes a Client.
type Config struct {
	// Client must be set. Its scheme need not know custom resource definitions. It needs the verb
	// get on customresourcedefinitions.apiextensions.k8s.io, and create and patch to write them.
	// Without get, existing definitions are accepted unchanged if the API serves their versions.
	Client client.Client
	// ReadOnly makes EnsureCreated write nothing. Default: it writes.
	ReadOnly bool
	// Force makes EnsureCreated replace a newer definition in the cluster by the given older one.
	// It is meant for an explicit request by a user. Default: the newer definition stays.
	Force bool
	// FieldManager is the field manager that applies the definitions. Default:
	// [DefaultFieldManager].
	FieldManager string
	// Logger must be set. It logs failed attempts.
	Logger micrologger.Logger
}

// Client ensures custom resource definitions. It is safe for concurrent use.
type Client struct{ config Config }

// New returns a Client. The error names each faulty field and wraps [informer.ErrInvalidConfig].
func New(config Config) (*Client, error) {
	var wrong faults.List
	wrong.If(config.Client == nil, "field Client must be set")
	wrong.If(config.Logger == nil, "field Logger must be set")
	wrong.If(config.ReadOnly && config.Force, "field Force must not be set beside ReadOnly")
	if err := wrong.Of("crdclient.Config"); err != nil {
		return nil, err
	}
	if config.FieldManager == "" {
		config.FieldManager = DefaultFieldManager
	}
	return &Client{config: config}, nil
}

// EnsureCreated reads the definition, applies it if it is missing or differs, and waits until its
// objects are served. It retries according to b, which belongs to the call. If b is nil, it uses
// backoff.NewExponentialBackOff. It returns the last error when b gives up, and the context's error
// joined with the last one when ctx ends. IsNamesConflict, IsNotEstablished and IsOutdated
// distinguish the causes.
func (c *Client) EnsureCreated(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition, b backoff.BackOff) error {
	if crd == nil || crd.Name == "" {
		return fmt.Errorf("ensure custom resource definition: %w: it has no name", informer.ErrInvalidConfig)
	}
	if b == nil {
		b = backoff.NewExponentialBackOff()
	}
	desired, err := newWanted(crd)
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
		if errors.Is(err, ErrNotEstablished) || apierrors.IsConflict(err) {
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

func (c *Client) ensure(ctx context.Context, w *wanted) error {
	content := &unstructured.Unstructured{}
	content.SetGroupVersionKind(w.content.GroupVersionKind())
	err := c.config.Client.Get(ctx, client.ObjectKeyFromObject(w.content), content)
	switch {
	case apierrors.IsForbidden(err):
		return c.discover(w, err)
	case apierrors.IsNotFound(err):
		return c.apply(ctx, w, nil, "there is none")
	case err != nil:
		return fmt.Errorf("get: %w", err)
	}
	s, err := newStanding(content)
	if err != nil {
		return err
	}
	lacks := s.lacks(w)
	switch {
	case lacks == "":
		return served(&s.crd)
	case c.config.Force || !s.isNewer(w):
		return c.apply(ctx, w, s, lacks+" differs")
	}
	if version := s.unserved(w); version != "" {
		return fmt.Errorf("%w: it was applied by a newer version, which does not serve %s any more", ErrOutdated, version)
	}
	c.config.Logger.Log("level", "info", "message", "custom resource definition stays as a newer version has applied it", "crd", w.crd.Name, "differs", lacks)
	return served(&s.crd)
}

// apply applies the wanted definition over the current one, which may be nil. why is the reason. A
// conflict, because the current one has changed or exists after all, is retried.
func (c *Client) apply(ctx context.Context, w *wanted, s *standing, why string) error {
	if c.config.ReadOnly {
		return fmt.Errorf("%w: %s; somebody has to apply it who may", ErrOutdated, why)
	}
	history, err := s.historyWith(w, c.config.Force)
	if err != nil {
		return err
	}
	applied := w.content.DeepCopy()
	// A proxy may have answered 404, or another replica may have been faster.
	applied.SetResourceVersion(absent.Version)
	if s != nil {
		applied.SetResourceVersion(s.content.GetResourceVersion())
	}
	annotations := applied.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[HistoryAnnotation] = history
	applied.SetAnnotations(annotations)
	err = c.config.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(applied),
		client.FieldOwner(c.config.FieldManager), client.ForceOwnership)
	if apierrors.IsForbidden(err) {
		return fmt.Errorf("%w: %s; somebody has to apply it who may: %w", ErrOutdated, why, err)
	}
	if err != nil {
		return fmt.Errorf("apply: %w", err)
	}
	if s, err = newStanding(applied); err != nil {
		return err
	}
	return served(&s.crd)
}

// discover is for clients that may not read definitions: it asks the API whether it serves the
// versions.
func (c *Client) discover(w *wanted, refused error) error {
	names := w.crd.Spec.Names
	for _, version := range w.crd.Spec.Versions {
		if !version.Served {
			continue
		}
		_, err := c.config.Client.RESTMapper().RESTMapping(schema.GroupKind{Group: w.crd.Spec.Group, Kind: names.Kind}, version.Name)
		if meta.IsNoMatchError(err) {
			return fmt.Errorf("%w: version %s is not served; somebody has to apply it who may: %w", ErrOutdated, version.Name, refused)
		}
		if err != nil {
			return fmt.Errorf("discover version %s: %w", version.Name, err)
		}
	}
	c.config.Logger.Log("level", "warning", "message", "custom resource definition is served, and taken as it is: it may not be looked at", "crd", w.crd.Name,
		"reason", refused.Error())
	return nil
}

// applyConfiguration returns the author's part of the definition, without status and empty fields.
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

// served returns nil if the API serves the objects of the definition, according to its conditions.
func served(crd *apiextensionsv1.CustomResourceDefinition) error {
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
