package keyed_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/resource/internal/keyed"
)

type key string

func (k key) String() string { return "thing " + string(k) }

type thing struct {
	key    key
	action plan.Action
}

func (t thing) Key() key            { return t.key }
func (t thing) Action() plan.Action { return t.action }
func (t thing) Held() keyed.Claim   { return keyed.Claim{} }
func (t thing) Change() plan.Change {
	return plan.Change{Action: t.action, Object: plan.Object{Name: string(t.key)}}
}

func things(keys ...key) keyed.State[key, thing] {
	return keyed.Desired("thing", len(keys), func(i int) (thing, error) {
		if keys[i] == "" {
			return thing{}, errors.New("it has no key")
		}
		return thing{key: keys[i]}, nil
	})
}

func TestOfDesiredThingsThoseAreLeftOutThatAreWrong(t *testing.T) {
	s := things("a", "b", "", "a", "c", "a")
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
	refused := errors.New("refused")
	faults := keyed.NewFaults(func(err error) bool { return errors.Is(err, refused) })
	create, update, remove := keyed.Sort(t.Context(), things("there", "old", "others"), things("new", "refused", "there", "replaced", "settled"), faults,
		func(_ thing, found bool, want thing) (thing, error) {
			switch {
			case want.key == "refused":
				return thing{}, refused
			case want.key == "replaced":
				want.action = plan.Delete
			case want.key == "settled":
			case found:
				want.action = plan.Update
			default:
				want.action = plan.Create
			}
			return want, nil
		},
		func(have thing) (thing, bool) { return thing{have.key, plan.Delete}, have.key != "others" })
	got := fmt.Sprint(create.Keys(), update.Keys(), remove.Keys(), remove.Reversed().Keys(), faults.Err())
	if want := "[thing new] [thing there] [thing old thing replaced] [thing replaced thing old] refused"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

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
			faults := keyed.NewFaults(func(err error) bool { return errors.Is(err, errKnown) })
			if stop := faults.Add(t.Context(), tc.err); stop != tc.stop {
				t.Errorf("stop: %v", stop)
			}
			if err := faults.Err(); err == nil || !strings.Contains(err.Error(), tc.err.Error()) {
				t.Errorf("got %v", err)
			}
		})
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if !keyed.NewFaults(nil).Add(ended, framework.Permanent(errKnown)) {
		t.Error("it goes on in a context that has ended")
	}
}

var errKnown = errors.New("known")
