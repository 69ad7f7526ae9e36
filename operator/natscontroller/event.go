package natscontroller

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/giantswarm/micrologger"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/identity"
	"github.com/operatorkit/operatorkit/informer/natsinformer"
)

const (
	// maxQueuedEvents is how many events wait to be written; more are dropped.
	maxQueuedEvents = 256
	// maxEventPrefix is how much of a key is in the key of an event: the whole may be as long as a key can be.
	maxEventPrefix = 1024
	// eventTimeout is how long one event may take, and all that still wait at the end.
	eventTimeout = 5 * time.Second
)

// Event is an event on an entity, as an entry of the bucket for events. Its key begins with the key of the entity, or the first 1,024
// characters of a longer one, and ends with a hash of what was said about it by whom: when the same is said again, the count of the entry goes up.
type Event struct {
	natsinformer.Meta `json:"metadata"`
	// Controller is the name of the operator and, after a slash, of the controller that said it.
	Controller string `json:"controller"`
	// Object is what it is about.
	Object EventObject `json:"object"`
	// Type is Normal or Warning.
	Type string `json:"type"`
	// Reason is short and for machines, in UpperCamelCase.
	Reason string `json:"reason"`
	// Message is for people.
	Message string `json:"message"`
	// Count is how often it was said, between FirstTimestamp and LastTimestamp.
	Count          int64       `json:"count"`
	FirstTimestamp metav1.Time `json:"firstTimestamp"`
	LastTimestamp  metav1.Time `json:"lastTimestamp"`
}

// EventObject is what an Event is about.
type EventObject struct {
	Kind string    `json:"kind"`
	Key  string    `json:"key"`
	UID  types.UID `json:"uid,omitempty"`
}

// Event records that something happened to an object: as an event in Kubernetes for an object of that, and as an entry of
// Config.Events for an entity. It never blocks: events that come too fast are dropped, and counted. eventtype is Normal or
// Warning, reason is for machines, message for people; what is secret must not be in it: in a step of a resource secretscontext.Scrub takes
// out what the reconciliation has read.
func (c *ControllerRuntime[T]) Event(object any, eventtype, reason, message string) {
	switch o := object.(type) {
	case runtime.Object:
		if c.config.Recorder != nil {
			c.config.Recorder.Event(o, eventtype, reason, message)
		}
	case natsinformer.Entity:
		c.events.add(o, c.kindOf(o), eventtype, reason, message)
	default:
		c.log("warning", "event dropped: it is about neither an entity nor a Kubernetes object", "type", fmt.Sprintf("%T", object), "reason", reason)
	}
}

// kindOf returns the kind of a primary, and the name of its Go type for any other entity.
func (c *ControllerRuntime[T]) kindOf(entity natsinformer.Entity) string {
	if _, ok := entity.(T); ok {
		return c.config.Kind
	}
	name := reflect.TypeOf(entity).String()
	return name[strings.LastIndexByte(name, '.')+1:]
}

// frameworkRecorder is the controller as the framework's recorder.
type frameworkRecorder[T natsinformer.Entity] struct{ controller *ControllerRuntime[T] }

// Event implements framework.EventRecorder.
func (r frameworkRecorder[T]) Event(object runtime.Object, eventtype, reason, message string) {
	r.controller.Event(object, eventtype, reason, message)
}

// EventOn implements framework.AnyEventRecorder.
func (r frameworkRecorder[T]) EventOn(object any, eventtype, reason, message string) {
	if _, ok := object.(absent); ok {
		return
	}
	r.controller.Event(object, eventtype, reason, message)
	if reason == framework.ReasonReconciliationFailed {
		r.controller.tellRefusal(object)
	}
}

// events writes the events on entities.
type events struct {
	identity identity.Identity
	bucket   *natsinformer.Bucket[*Event]
	queue    chan *Event
	metrics  *metrics
	logger   micrologger.Logger
	// failing is set while events can't be written, and used by run alone.
	failing bool
}

func newEvents(i identity.Identity, bucket *natsinformer.Bucket[*Event], metrics *metrics, logger micrologger.Logger) *events {
	return &events{identity: i, bucket: bucket, queue: make(chan *Event, maxQueuedEvents), metrics: metrics, logger: logger}
}

// add puts an event into the queue if there is room, and a bucket.
func (e *events) add(entity natsinformer.Entity, kind, eventtype, reason, message string) {
	if e.bucket == nil {
		return
	}
	now := metav1.NewTime(time.Now().UTC().Truncate(time.Second))
	event := &Event{
		Controller: e.identity.Component(),
		Object:     EventObject{Kind: kind, Key: entity.GetName(), UID: entity.GetUID()},
		Type:       eventtype, Reason: reason, Message: message,
		Count: 1, FirstTimestamp: now, LastTimestamp: now,
	}
	event.Name = event.key(e.identity)
	select {
	case e.queue <- event:
	default:
		e.metrics.dropped.Inc()
	}
}

// key is the same for events by which one controller says the same.
func (e *Event) key(by identity.Identity) string {
	mark := identity.Mark{Operator: by.Operator, Framework: by.Framework}
	prefix := e.Object.Key
	if len(prefix) > maxEventPrefix {
		prefix = strings.TrimRight(prefix[:maxEventPrefix], ".")
	}
	return prefix + "." + mark.Hash(e.Object.Kind, e.Object.Key, string(e.Object.UID), e.Type, e.Reason, e.Message)
}

// run writes events until ctx ends, and then those that wait still, in a bounded time.
func (e *events) run(ctx context.Context) {
	writing, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	for ctx.Err() == nil {
		select {
		case event := <-e.queue:
			e.write(writing, event)
		case <-ctx.Done():
		}
	}
	last := time.AfterFunc(eventTimeout, cancel)
	defer last.Stop()
	for {
		select {
		case event := <-e.queue:
			e.write(writing, event)
		default:
			return
		}
	}
}

// write stores an event, or drops it.
func (e *events) write(ctx context.Context, event *Event) {
	ctx, cancel := context.WithTimeout(ctx, eventTimeout)
	defer cancel()
	err := e.store(ctx, event)
	for apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		err = e.store(ctx, event)
	}
	if err == nil {
		e.failing = false
		e.metrics.written.Inc()
		return
	}
	e.metrics.dropped.Inc()
	if !e.failing {
		e.logger.Log("level", "warning", "message", "events can't be written", "controller", e.identity.Framework, "error", err.Error())
	}
	e.failing = true
}

// store counts the event up, or creates it.
func (e *events) store(ctx context.Context, event *Event) error {
	said, err := e.bucket.Get(ctx, event.Name)
	if apierrors.IsNotFound(err) {
		return e.bucket.Create(ctx, event)
	}
	if err != nil {
		return err
	}
	said.Count++
	said.LastTimestamp = event.LastTimestamp
	return e.bucket.Update(ctx, said)
}
