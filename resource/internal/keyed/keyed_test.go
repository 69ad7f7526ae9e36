package keyed_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/giantswarm/micrologger/microloggertest"
	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/identity"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/resource/internal/keyed"
)

type key string

func (k key) String() string { return "thing " + string(k) }

type thing = keyed.Item[key, struct{}]

func listed(k key, h keyed.Holder) thing { return thing{Key: k, Claim: keyed.Claim{Holder: h}} }

// world is what there is, what is desired, and what can't be applied.
type world struct {
	there   []thing
	desired []key
	refuses map[key]error
	applied []key
}

var _ keyed.Backend[key, struct{}] = (*world)(nil)

func (w *world) List(context.Context) (keyed.State[key, struct{}], error) {
	return keyed.State[key, struct{}]{Items: w.there}, nil
}

func (w *world) Desired(context.Context) (int, func(i int) (thing, error), error) {
	return len(w.desired), func(i int) (thing, error) {
		if w.desired[i] == "" {
			return thing{}, errors.New("it has no key")
		}
		return thing{Key: w.desired[i]}, nil
	}, nil
}

func (w *world) Find(context.Context, thing) (thing, bool, error) { return thing{}, false, nil }

func (w *world) Compare(_ context.Context, have *thing, want thing) (thing, error) {
	switch {
	case w.refuses[want.Key] != nil:
		return thing{}, w.refuses[want.Key]
	case want.Key == "replaced":
		want.Change.Action = plan.Delete
	case want.Key == "settled":
	case have != nil:
		want.Change.Action = plan.Update
	default:
		want.Change.Action = plan.Create
	}
	return want, nil
}

func (w *world) Deletion(have thing) (thing, bool) {
	have.Change.Action = plan.Delete
	return have, false
}

func (w *world) Apply(_ context.Context, it thing) (string, error) {
	w.applied = append(w.applied, it.Key)
	return "did it", w.refuses[it.Key]
}

func (w *world) engine() *keyed.Engine[struct{}, key, struct{}] {
	return &keyed.Engine[struct{}, key, struct{}]{
		Config: keyed.Config{
			Name: "things", Noun: "thing", Logger: microloggertest.New(),
			Alone: func(err error) bool { return errors.Is(err, errKnown) },
		},
		For: func(
			ctx context.Context, _ struct{}, _ []identity.Mark, _ any,
		) (context.Context, keyed.Backend[key, struct{}], error) {
			return ctx, w, nil
		},
	}
}

func TestOfDesiredThingsThoseAreLeftOutThatAreWrong(t *testing.T) {
	s, err := (&world{desired: []key{"a", "b", "", "a", "c", "a"}}).engine().GetDesiredState(t.Context(), struct{}{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]key{"b", "c"}, s.Keys()); diff != "" {
		t.Errorf("desired (-want +got):\n%s", diff)
	}
	var faults []string
	for _, fault := range s.Faults {
		faults = append(faults, fault.Error())
		if !framework.IsPermanent(fault) {
			t.Errorf("%v is not permanent", fault)
		}
	}
	want := []string{"desired thing 2: it has no key", "desired thing 3: thing a is there twice", "desired thing 5: thing a is there twice"}
	if diff := cmp.Diff(want, faults); diff != "" {
		t.Errorf("faults (-want +got):\n%s", diff)
	}
}

func TestThingsAreSortedByWhatHappensToThem(t *testing.T) {
	w := &world{
		there:   []thing{listed("there", keyed.Ours), listed("old", keyed.Ours), listed("others", keyed.Foreign)},
		desired: []key{"new", "refused", "there", "replaced", "settled"},
		refuses: map[key]error{"refused": errKnown},
	}
	e := w.engine()
	current, err := e.GetCurrentState(t.Context(), struct{}{})
	if err != nil {
		t.Fatal(err)
	}
	desired, err := e.GetDesiredState(t.Context(), struct{}{})
	if err != nil {
		t.Fatal(err)
	}
	patch, err := e.NewUpdatePatch(t.Context(), struct{}{}, current, desired)
	create, _ := patch.CreateChange()
	update, _ := patch.UpdateChange()
	remove, _ := patch.DeleteChange()
	got := fmt.Sprint(create.Keys(), update.Keys(), remove.Keys(), err)
	if want := "[thing new] [thing there] [thing replaced thing old] known"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

var both = keyed.State[key, struct{}]{Items: []thing{{Key: "a"}, {Key: "b"}}}

func TestOnlyWhatConcernsOneThingLetsTheOthersGoOn(t *testing.T) {
	things := schema.GroupResource{Resource: "things"}
	for name, tc := range map[string]struct {
		err  error
		stop bool
	}{
		"a permanent error":               {framework.Permanent(errors.New("no")), false},
		"one that is known":               {fmt.Errorf("wrapped: %w", errKnown), false},
		"an answer about the thing":       {apierrors.NewForbidden(things, "a", errors.New("no")), false},
		"a conflict":                      {apierrors.NewConflict(things, "a", errors.New("old")), false},
		"a fault of the server's webhook": {apierrors.NewInternalError(errors.New("webhook")), false},
		"an answer without a reason":      {&apierrors.StatusError{ErrStatus: metav1.Status{Code: 400, Message: "no"}}, false},
		"a fault without a reason":        {&apierrors.StatusError{ErrStatus: metav1.Status{Code: 500, Message: "no"}}, false},
		"no server, without a reason":     {&apierrors.StatusError{ErrStatus: metav1.Status{Code: 503, Message: "no"}}, true},
		"too many requests":               {apierrors.NewTooManyRequests("later", 1), true},
		"nobody knows us":                 {apierrors.NewUnauthorized("who?"), true},
		"nobody answers":                  {errors.New("connection refused"), true},
	} {
		t.Run(name, func(t *testing.T) {
			w := &world{refuses: map[key]error{"a": tc.err}}
			err := w.engine().ApplyCreateChange(t.Context(), struct{}{}, both)
			if stop := len(w.applied) == 1; stop != tc.stop {
				t.Errorf("stop: %v", stop)
			}
			if err == nil || !strings.Contains(err.Error(), tc.err.Error()) {
				t.Errorf("got %v", err)
			}
		})
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	w := &world{refuses: map[key]error{"a": framework.Permanent(errKnown)}}
	err := w.engine().ApplyCreateChange(ended, struct{}{}, both)
	if err == nil || len(w.applied) != 1 {
		t.Errorf("got %v, and it goes on in a context that has ended", err)
	}
}

var errKnown = errors.New("known")
