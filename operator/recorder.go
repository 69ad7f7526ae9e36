package operator

import (
	"context"
	"fmt"
	"net/http"
	"sync"

	"github.com/giantswarm/micrologger"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/internal/cut"
)

// Recorder writes Kubernetes events. It never blocks: events are written in the background. Events
// that arrive too fast, or are not written when Close is called, are dropped. Messages are cut to
// the limit of the API, 1024 bytes. Repeated events are sampled like those of Kubernetes' own
// components: an equal event increases a count; of more than ten in ten minutes that differ only in
// their message one is kept; and an object gets 25 at once, and then one in five minutes. It is
// safe for concurrent use.
type Recorder struct {
	record.EventRecorder

	broadcaster record.EventBroadcaster
	scheme      *runtime.Scheme
	muted       klog.Logger
	log         *gate
	sink        *eventSink
	closed      sync.Once
}

func newRecorder(component string, restConfig *rest.Config, httpClient *http.Client, scheme *runtime.Scheme, logger micrologger.Logger) (*Recorder, error) {
	events, err := typedcorev1.NewForConfigAndClient(restConfig, httpClient)
	if err != nil {
		return nil, fmt.Errorf("make the client for events: %w", err)
	}
	log, gate := newMuting(logger)
	ctx := klog.NewContext(context.Background(), log)
	writing, cancel := context.WithCancel(context.Background())
	r := &Recorder{
		broadcaster: record.NewBroadcaster(record.WithContext(ctx)),
		scheme:      scheme,
		muted:       log,
		log:         gate,
		sink:        &eventSink{events: events, ctx: writing, cancel: cancel},
	}
	r.EventRecorder = r.For(component)
	r.broadcaster.StartRecordingToSink(r.sink)
	return r, nil
}

// For returns a recorder of events with component as their source. It ends with r.
func (r *Recorder) For(component string) record.EventRecorder {
	return cutting{r.broadcaster.NewRecorder(r.scheme, corev1.EventSource{Component: component}).WithLogger(r.muted)}
}

// maxEventMessage is the limit of the API for a message, less the prefix of events that client-go
// combines.
const maxEventMessage = 1024 - len("(combined from similar events): ")

// cutting cuts the messages of events.
type cutting struct{ record.EventRecorder }

// Event implements record.EventRecorder.
func (c cutting) Event(object runtime.Object, eventtype, reason, message string) {
	c.EventRecorder.Event(object, eventtype, reason, cut.Text(message, maxEventMessage))
}

// Eventf implements record.EventRecorder.
func (c cutting) Eventf(object runtime.Object, eventtype, reason, format string, args ...any) {
	c.Event(object, eventtype, reason, fmt.Sprintf(format, args...))
}

// AnnotatedEventf implements record.EventRecorder.
func (c cutting) AnnotatedEventf(object runtime.Object, annotations map[string]string, eventtype, reason, format string, args ...any) {
	c.EventRecorder.AnnotatedEventf(object, annotations, eventtype, reason, "%s", cut.Text(fmt.Sprintf(format, args...), maxEventMessage))
}

// of returns the recorder of a framework.
func (r *Recorder) of(config framework.Config) record.EventRecorder {
	return r.For(config.Identity().Component())
}

// Close stops writing. A request in progress is cancelled. Events recorded from now on are dropped.
// Nothing is logged after Close has returned.
func (r *Recorder) Close() {
	r.closed.Do(func() {
		r.log.close()
		r.broadcaster.Shutdown()
		r.sink.close()
	})
}

// eventSink writes events to the API server, until it is closed.
type eventSink struct {
	events typedcorev1.EventsGetter
	ctx    context.Context
	cancel context.CancelFunc
	// writing is held for reading by each request.
	writing sync.RWMutex
}

// close cancels requests and waits for their end.
func (s *eventSink) close() {
	s.cancel()
	s.writing.Lock()
	defer s.writing.Unlock()
}

// Create implements record.EventSink.
func (s *eventSink) Create(e *corev1.Event) (*corev1.Event, error) {
	s.writing.RLock()
	defer s.writing.RUnlock()
	return s.events.Events(e.Namespace).Create(s.ctx, e, metav1.CreateOptions{})
}

// Update implements record.EventSink.
func (s *eventSink) Update(e *corev1.Event) (*corev1.Event, error) {
	s.writing.RLock()
	defer s.writing.RUnlock()
	return s.events.Events(e.Namespace).Update(s.ctx, e, metav1.UpdateOptions{})
}

// Patch implements record.EventSink.
func (s *eventSink) Patch(e *corev1.Event, data []byte) (*corev1.Event, error) {
	s.writing.RLock()
	defer s.writing.RUnlock()
	return s.events.Events(e.Namespace).Patch(s.ctx, e.Name, types.StrategicMergePatchType, data, metav1.PatchOptions{})
}
