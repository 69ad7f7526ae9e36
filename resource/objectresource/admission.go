package objectresource

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	quantity "k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/resource/internal/serverside"
)

// ReasonNotKept is the reason of the warning event on a primary of which an object does not keep the values that were applied to it.
const ReasonNotKept = "AppliedValuesNotKept"

// maxFieldsTold is how many fields of an object an event names.
const maxFieldsTold = 10

// tellNotKept reports, once, that an API server does not keep what was applied: an admission webhook or policy has set something else.
// Applying it again would change nothing, or be changed again.
func (r *resource[O]) tellNotKept(ctx context.Context, want item, applied *unstructured.Unstructured) {
	paths := notKept("", serverside.Stable(want.Thing.content.Object), applied.Object)
	if len(paths) == 0 {
		return
	}
	fields := strings.Join(paths[:min(len(paths), maxFieldsTold)], ", ")
	if more := len(paths) - maxFieldsTold; more > 0 {
		fields += fmt.Sprintf(" and %d more", more)
	}
	if r.settled.told(want.Key, fields) {
		return
	}
	message := fmt.Sprintf("%s does not keep what is applied to it, as an admission webhook or policy may have it: %s",
		want.Key, fields)
	if !framework.Warn(ctx, ReasonNotKept, message) {
		return
	}
	r.settled.tell(want.Key, fields)
	framework.Logger(ctx, r.config.Logger).LogCtx(ctx, "level", "warning", "message", "an object does not keep what is applied to it",
		"written", want.Key.String(), "fields", fields)
}

// notKept returns the paths of those values of want that got has other values for, or none. What is written in another notation is kept, and so
// are elements of a list that stand elsewhere in it; an empty value is as good as none.
func notKept(path string, want, got any) (paths []string) {
	switch w := want.(type) {
	case map[string]any:
		g, _ := got.(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(w)) {
			paths = append(paths, notKept(strings.TrimPrefix(path+plan.Segment(name), "."), w[name], g[name])...)
		}
		return paths
	case []any:
		g, _ := got.([]any)
		for i, element := range w {
			paths = append(paths, notKeptIn(path+"["+strconv.Itoa(i)+"]", element, g)...)
		}
		return paths
	}
	if want == nil || want == "" || want == false || fmt.Sprint(want) == "0" || sameMeaning(want, got) {
		return nil
	}
	return []string{path}
}

// notKeptIn compares an element of a list with the one that is most like it.
func notKeptIn(path string, want any, list []any) (least []string) {
	if len(list) == 0 {
		return notKept(path, want, nil)
	}
	for i, got := range list {
		if paths := notKept(path, want, got); i == 0 || len(paths) < len(least) {
			least = paths
		}
	}
	return least
}

// sameMeaning reports whether two values are the same, maybe in other notations: API servers write quantities, durations and times in their own.
func sameMeaning(a, b any) bool {
	x, y := fmt.Sprint(a), fmt.Sprint(b)
	if x == y {
		return true
	}
	if p, err := quantity.ParseQuantity(x); err == nil {
		q, err := quantity.ParseQuantity(y)
		return err == nil && p.Cmp(q) == 0
	}
	if p, err := time.ParseDuration(x); err == nil {
		q, err := time.ParseDuration(y)
		return err == nil && p == q
	}
	p, err := time.Parse(time.RFC3339, x)
	if err != nil {
		return false
	}
	q, err := time.Parse(time.RFC3339, y)
	return err == nil && p.Equal(q)
}
