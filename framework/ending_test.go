package framework

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/operatorkit/operatorkit/internal/panics"
)

func conflict() error {
	return apierrors.NewConflict(schema.GroupResource{Resource: "configmaps"}, "a", errors.New("the object has been modified"))
}

// terminatingNamespace is what the API server answers to the creation of an object in a namespace that is being deleted.
func terminatingNamespace() error {
	err := apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "a", errors.New("unable to create new content in namespace n because it is being terminated"))
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause, Field: "metadata.namespace"}}
	return err
}

// heldField is what the API server answers to a server-side apply of a field that somebody else holds.
func heldField() error {
	return apierrors.NewApplyConflict([]metav1.StatusCause{{
		Type: metav1.CauseTypeFieldManagerConflict, Message: `conflict with "kubectl" using v1`, Field: ".data.a",
	}}, `Apply failed with 1 conflict: conflict with "kubectl" using v1: .data.a`)
}

func TestWhatFollowsFromTheEndOfAReconciliation(t *testing.T) {
	boom := errors.New("boom")
	failed := counts{errors: true, retries: true}
	told := decision{again: afterBackoff, tell: true, count: failed}
	silent := decision{again: afterBackoff, conflicts: 1, count: counts{conflicts: true}}
	gaveUp := decision{again: atNextChange, tell: true, count: counts{errors: true}}
	for name, tc := range map[string]struct {
		ending ending
		want   decision
	}{
		"success":                         {ending{outcome: Succeeded}, decision{again: atNextChange}},
		"success, interrupted":            {ending{outcome: Succeeded, interrupted: true}, decision{again: atNextChange}},
		"success with a request":          {ending{outcome: Succeeded, ask: time.Hour}, decision{again: atNextChange, ask: time.Hour}},
		"cancelled":                       {ending{outcome: Canceled}, decision{again: atNextChange}},
		"ignored":                         {ending{outcome: Ignored}, decision{again: atNextChange}},
		"planned":                         {ending{outcome: Planned}, decision{again: atNextChange}},
		"a deletion that waits":           {ending{outcome: Waiting}, decision{again: afterBackoff}},
		"a deletion that asks":            {ending{outcome: Waiting, ask: time.Hour}, decision{again: atNextChange, ask: time.Hour}},
		"an error":                        {ending{outcome: Failed, err: boom}, told},
		"an error, interrupted":           {ending{outcome: Failed, err: boom, interrupted: true}, decision{again: atNextStart}},
		"an error after conflicts":        {ending{outcome: Failed, err: boom, conflicts: 7}, told},
		"an error with a request":         {ending{outcome: Failed, err: boom, ask: time.Hour}, decision{again: afterBackoff, ask: time.Hour, tell: true, count: failed}},
		"a panic":                         {ending{outcome: Failed, err: panics.New("oh")}, decision{again: afterBackoff, tell: true, count: counts{errors: true, retries: true, panics: true}}},
		"a permanent error":               {ending{outcome: Failed, err: fmt.Errorf("no use: %w", Permanent(boom))}, gaveUp},
		"a permanent error that asks":     {ending{outcome: Failed, err: Permanent(boom), ask: time.Hour}, decision{again: atNextChange, ask: time.Hour, tell: true, count: counts{errors: true}}},
		"a permanent conflict":            {ending{outcome: Failed, err: Permanent(conflict())}, gaveUp},
		"a conflict":                      {ending{outcome: Failed, err: fmt.Errorf("update: %w", conflict())}, silent},
		"a conflict with a request":       {ending{outcome: Failed, err: conflict(), ask: time.Hour}, decision{again: afterBackoff, ask: time.Hour, conflicts: 1, count: counts{conflicts: true}}},
		"the fourth conflict in a row":    {ending{outcome: Failed, err: conflict(), conflicts: 3}, decision{again: afterBackoff, conflicts: 4, count: counts{conflicts: true}}},
		"the fifth conflict in a row":     {ending{outcome: Failed, err: conflict(), conflicts: 4}, decision{again: afterBackoff, tell: true, conflicts: 5, count: counts{conflicts: true}}},
		"conflicts only":                  {ending{outcome: Failed, err: errors.Join(conflict(), conflict())}, silent},
		"conflicts in a partial error":    {ending{outcome: Failed, err: &StepError{Err: Partial(conflict(), conflict())}}, silent},
		"one beside another partial one":  {ending{outcome: Failed, err: Partial(conflict(), boom)}, told},
		"a conflict beside an error":      {ending{outcome: Failed, err: errors.Join(conflict(), boom)}, told},
		"a field that somebody holds":     {ending{outcome: Failed, err: heldField()}, told},
		"a permanent and a passing error": {ending{outcome: Failed, err: errors.Join(Permanent(boom), boom)}, told},
		"a namespace that is being deleted": {
			ending{outcome: Failed, err: fmt.Errorf("create: %w", terminatingNamespace())}, decision{again: afterPause, pause: 30 * time.Second},
		},
		"such a namespace beside an error": {ending{outcome: Failed, err: errors.Join(terminatingNamespace(), boom)}, told},
		"a server that is to be left alone": {
			ending{outcome: Failed, err: errors.Join(boom, fmt.Errorf("list: %w", apierrors.NewTooManyRequests("later", 7)))},
			decision{again: afterBackoff, pause: 7 * time.Second, tell: true, count: failed},
		},
		"a partial error of a server that is to be left alone": {
			ending{outcome: Failed, err: Partial(boom, apierrors.NewTooManyRequests("later", 7))},
			decision{again: afterBackoff, pause: 7 * time.Second, tell: true, count: failed},
		},
		"a server that is to be left alone for days": {
			ending{outcome: Failed, err: apierrors.NewTooManyRequests("later", 1_000_000)},
			decision{again: afterBackoff, pause: time.Hour, tell: true, count: failed},
		},
		"a permanent error of such a server": {ending{outcome: Failed, err: Permanent(apierrors.NewTooManyRequests("later", 7))}, gaveUp},
		"permanent errors only":              {ending{outcome: Failed, err: errors.Join(Permanent(boom), Permanent(boom))}, gaveUp},
		"an error with a time of its own":    {ending{outcome: Failed, err: fmt.Errorf("step: %w", &RetryAfterError{time.Minute, boom})}, decision{again: afterPause, pause: time.Minute, count: counts{retries: true}}},
		"such an error beside another":       {ending{outcome: Failed, err: errors.Join(&RetryAfterError{time.Minute, boom}, boom)}, told},
		"such an error that is permanent":    {ending{outcome: Failed, err: &RetryAfterError{time.Minute, Permanent(boom)}}, gaveUp},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, decide(tc.ending), cmp.AllowUnexported(decision{}, counts{})); diff != "" {
				t.Errorf("decided (-want +got):\n%s", diff)
			}
		})
	}
}

func TestJoinedErrorsArePermanentIfAllOfThemAre(t *testing.T) {
	boom := errors.New("boom")
	no := Permanent(boom)
	for name, tc := range map[string]struct {
		err  error
		want bool
	}{
		"none":                              {nil, false},
		"a passing one":                     {boom, false},
		"a permanent one":                   {no, true},
		"wrapped":                           {fmt.Errorf("x: %w", no), true},
		"wrapped with a name for it":        {fmt.Errorf("%w: %w", ErrExecutionFailed, no), true},
		"joined with a passing one":         {errors.Join(no, boom), false},
		"joined with one that came before":  {errors.Join(boom, no), false},
		"joined with another permanent one": {errors.Join(no, fmt.Errorf("x: %w", no)), true},
		"wrapped when it was joined":        {fmt.Errorf("x: %w", errors.Join(no, boom)), false},
		"joined deeper down":                {errors.Join(no, fmt.Errorf("x: %w", errors.Join(no, boom))), false},
		"a join that was marked as a whole": {Permanent(errors.Join(no, boom)), true},
		"partial, with a passing one":       {Partial(no, boom), false},
		"partial, permanent ones only":      {Partial(no, no), true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := IsPermanent(tc.err); got != tc.want {
				t.Errorf("IsPermanent(%v) = %t", tc.err, got)
			}
		})
	}
}

func TestAdviceSaysHowToMendWhatAnAPIServerRefused(t *testing.T) {
	forbidden := func(message string) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonForbidden, Code: 403, Message: message}}
	}
	list := forbidden(`deployments.apps is forbidden: User "system:serviceaccount:ops:web" cannot list resource "deployments" in API group "apps" in the namespace "shop"`)
	const mayList = `bind a Role in namespace "shop", or a ClusterRole, to "system:serviceaccount:ops:web" with the rule {apiGroups: ["apps"], resources: ["deployments"], verbs: ["list"]}`
	for name, tc := range map[string]struct {
		err  error
		want string
	}{
		"in a namespace": {fmt.Errorf("step: %w", list), mayList},
		"of a cluster": {forbidden(`nodes "a" is forbidden: User "jane" cannot get resource "nodes" in API group "" at the cluster scope`),
			`bind a ClusterRole to "jane" with the rule {apiGroups: [""], resources: ["nodes"], verbs: ["get"]}`},
		"of a subresource": {forbidden(`pods "a" is forbidden: User "jane" cannot patch resource "pods/status" in API group "" in the namespace "x"`),
			`bind a Role in namespace "x", or a ClusterRole, to "jane" with the rule {apiGroups: [""], resources: ["pods/status"], verbs: ["patch"]}`},
		"a quota":                     {forbidden(`pods "a" is forbidden: exceeded quota: q`), ""},
		"twice the same":              {errors.Join(list, list), mayList},
		"of some things of many":      {Partial(errors.New("boom"), fmt.Errorf("step: %w", list)), mayList},
		"a field that somebody holds": {heldField(), `data.a is held by "kubectl" using v1: leave the field to that manager, have it give it up, or take it over with client.ForceOwnership`},
		"an object that has changed":  {conflict(), ""},
		"any other error":             {errors.New("boom"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, adviceOn(tc.err)); diff != "" {
				t.Errorf("advice (-want +got):\n%s", diff)
			}
		})
	}
}
