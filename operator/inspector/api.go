package inspector

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/klauspost/compress/gzhttp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

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

// apiError is what the JSON interface answers when it can't answer.
type apiError struct {
	Error string `json:"error"`
}

func (i *Inspector) answer(w http.ResponseWriter, status int, value any) {
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
	i.answer(w, http.StatusOK, i.overviewFor(r))
}

func (i *Inspector) answerObjects(w http.ResponseWriter, r *http.Request) {
	q, err := queryOf(r)
	if err != nil {
		i.answer(w, http.StatusBadRequest, apiError{err.Error()})
		return
	}
	list, err := i.listFor(r, q)
	if err != nil {
		i.answer(w, statusOf(err), apiError{err.Error()})
		return
	}
	i.answer(w, http.StatusOK, list)
}

func (i *Inspector) answerObject(w http.ResponseWriter, r *http.Request) {
	id := idOf(r)
	o, found := i.find(r.Context(), id)
	if !found {
		i.answer(w, http.StatusNotFound, apiError{errNoObject(id).Error()})
		return
	}
	i.answer(w, http.StatusOK, o)
}

func (i *Inspector) answerPlan(w http.ResponseWriter, r *http.Request) {
	p, err := i.plan(w, r, idOf(r))
	if err != nil {
		i.answer(w, statusOf(err), apiError{err.Error()})
		return
	}
	i.answer(w, http.StatusOK, p)
}

// errBusy is too many plans at once.
var errBusy = errors.New("other plans are being made: try again in a moment")

// errTooMuch is a list that goes too far.
var errTooMuch = errors.New("too many objects")

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
	switch {
	case apierrors.IsNotFound(err):
		return http.StatusNotFound
	case errors.Is(err, errTooMuch):
		return http.StatusBadRequest
	case errors.Is(err, errBusy):
		return http.StatusTooManyRequests
	case errors.Is(err, context.DeadlineExceeded):
		return http.StatusGatewayTimeout
	}
	return http.StatusInternalServerError
}

func idOf(r *http.Request) objectID {
	return objectID{r.Form.Get("framework"), informer.Key{Namespace: r.Form.Get("namespace"), Name: r.Form.Get("name")}}
}

func errNoObject(id objectID) error {
	return apierrors.NewNotFound(objectsOf(id.framework), id.key.String())
}
