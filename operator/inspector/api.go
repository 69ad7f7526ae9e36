package inspector

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/klauspost/compress/gzhttp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/informer"
)

// Path is where everything is served below.
const Path = "/inspector/"

// maxPlans is how many plans are made at once: they read from the systems that the operator works on.
const maxPlans = 2

// maxForm is how many bytes a form may have.
const maxForm = 16 << 10

func (i *Inspector) routes() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /{$}", http.RedirectHandler(Path, http.StatusFound))
	mux.HandleFunc("GET "+Path+"{$}", i.overviewPage)
	mux.HandleFunc("GET "+Path+"objects", i.objectsPage)
	mux.HandleFunc("GET "+Path+"object", i.objectPage)
	mux.HandleFunc("POST "+Path+"object", i.planPage)
	mux.HandleFunc("GET "+Path+"events", i.stream)
	mux.HandleFunc("GET "+Path+"assets/{name}", serveAsset)
	mux.HandleFunc("GET "+Path+"api/v1/overview", i.answerOverview)
	mux.HandleFunc("GET "+Path+"api/v1/objects", i.answerObjects)
	mux.HandleFunc("GET "+Path+"api/v1/object", i.answerObject)
	mux.HandleFunc("GET "+Path+"api/v1/graphs", i.answerGraphs)
	mux.HandleFunc("POST "+Path+"api/v1/plan", i.answerPlan)

	all := http.NewServeMux()
	all.Handle("/", gzhttp.GzipHandler(mux))
	// The messages of a stream have to arrive one by one.
	all.Handle(Path+"events", mux)
	return all
}

// refusal is an error with the status of the answer.
type refusal struct {
	error
	status int
}

// errBusy is too many plans at once.
var errBusy = refusal{errors.New("other plans are being made: try again in a moment"), http.StatusTooManyRequests}

// answer answers by the JSON of a value, or by an error.
func (i *Inspector) answer(w http.ResponseWriter, value any, err error) {
	status := http.StatusOK
	if err != nil {
		status, value = statusOf(err), map[string]string{"error": err.Error()}
	}
	data, err := json.Marshal(value)
	if err != nil {
		i.log("can't encode an answer", "error", err.Error())
		status, data = http.StatusInternalServerError, []byte(`{"error":"the answer can't be encoded"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	// A client that has gone needs no answer.
	_, _ = w.Write(append(data, '\n'))
}

func (i *Inspector) answerOverview(w http.ResponseWriter, r *http.Request) {
	i.answer(w, i.overviewFor(r), nil)
}

func (i *Inspector) answerObjects(w http.ResponseWriter, r *http.Request) {
	_, list, err := i.listFor(r)
	i.answer(w, list, err)
}

func (i *Inspector) answerObject(w http.ResponseWriter, r *http.Request) {
	o, err := i.find(r.Context(), idOf(r))
	i.answer(w, o, err)
}

func (i *Inspector) answerPlan(w http.ResponseWriter, r *http.Request) {
	p, err := i.plan(w, r, idOf(r))
	i.answer(w, p, err)
}

// plan plans an object. It writes nothing.
func (i *Inspector) plan(w http.ResponseWriter, r *http.Request, id objectID) (*plan.Plan, error) {
	s := i.framework(id.framework)
	if s == nil {
		return nil, errNoObject(id)
	}
	select {
	case i.plans <- struct{}{}:
		defer func() { <-i.plans }()
	default:
		return nil, errBusy
	}
	takeLonger(w, r, i.config.PlanTimeout)
	ctx, cancel := context.WithTimeout(r.Context(), i.config.PlanTimeout)
	defer cancel()
	p, err := s.framework.Plan(ctx, id.key)
	if err != nil {
		return nil, fmt.Errorf("plan %s: %w", id.key, err)
	}
	return p, nil
}

func statusOf(err error) int {
	var refused refusal
	switch {
	case errors.As(err, &refused):
		return refused.status
	case apierrors.IsNotFound(err):
		return http.StatusNotFound
	case errors.Is(err, context.DeadlineExceeded):
		return http.StatusGatewayTimeout
	}
	return http.StatusInternalServerError
}

func idOf(r *http.Request) objectID {
	return objectID{r.Form.Get("framework"), informer.Key{Namespace: r.Form.Get("namespace"), Name: r.Form.Get("name")}}
}

func errNoObject(id objectID) error {
	return apierrors.NewNotFound(schema.GroupResource{Resource: id.framework}, id.key.String())
}
