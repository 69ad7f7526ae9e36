package framework_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/giantswarm/micrologger"
	"github.com/giantswarm/micrologger/loggermeta"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer"
)

// messages reads the lines of a log of which one of the keys is the text.
func messages(t *testing.T, log *bytes.Buffer, message string, keys ...string) (found []string) {
	t.Helper()
	for line := range strings.Lines(log.String()) {
		var pairs map[string]string
		if err := json.Unmarshal([]byte(line), &pairs); err != nil || pairs["message"] != message {
			continue
		}
		var said []string
		for _, key := range keys {
			said = append(said, key+"="+pairs[key])
		}
		found = append(found, strings.Join(said, " "))
	}
	return found
}

// speaking says something in every step.
type speaking struct {
	logger micrologger.Logger
	world  string
}

func (s *speaking) say(ctx context.Context) { s.logger.LogCtx(ctx, "level", "info", "message", "said") }

func (s *speaking) Name() string { return "speaking" }
func (s *speaking) GetCurrentState(ctx context.Context, _ *corev1.ConfigMap) (string, error) {
	s.say(ctx)
	return s.world, nil
}
func (s *speaking) GetDesiredState(ctx context.Context, _ *corev1.ConfigMap) (string, error) {
	s.say(ctx)
	return "there", nil
}
func (s *speaking) NewUpdatePatch(ctx context.Context, _ *corev1.ConfigMap, current, desired string) (*framework.TypedPatch[string], error) {
	s.say(ctx)
	p := framework.NewTypedPatch[string]()
	p.SetCreateChange(desired)
	p.SetUpdateChange(desired)
	return p, nil
}
func (s *speaking) NewDeletePatch(context.Context, *corev1.ConfigMap, string, string) (*framework.TypedPatch[string], error) {
	return nil, nil
}
func (s *speaking) ApplyCreateChange(ctx context.Context, _ *corev1.ConfigMap, change string) error {
	s.say(ctx)
	s.world = change
	return nil
}
func (s *speaking) ApplyUpdateChange(ctx context.Context, _ *corev1.ConfigMap, _ string) error {
	s.say(ctx)
	return errors.New("refused")
}
func (s *speaking) ApplyDeleteChange(context.Context, *corev1.ConfigMap, string) error { return nil }

func TestLogCtxInAResourceSaysObjectResourceStepAndLoop(t *testing.T) {
	var log bytes.Buffer
	logger := logTo(t, &log)
	ops := &speaking{logger: logger}
	r, err := framework.NewTypedCRUDResource(framework.TypedCRUDResourceConfig[*corev1.ConfigMap, string]{Logger: logger, Ops: ops})
	if err != nil {
		t.Fatal(err)
	}
	wrapped := framework.WrapSteps(r, func(ctx context.Context, _ framework.StepInfo, next func(context.Context) error) error {
		logger.LogCtx(ctx, "level", "info", "message", "around")
		return next(ctx)
	})
	plain := &resource{name: "plain", created: func(ctx context.Context, _ any) error { ops.say(ctx); return nil }}
	synctest.Test(t, func(t *testing.T) {
		source := informer.NewPush("objects")
		f := newFramework(t, framework.Config{Name: "test", Source: source, BackOffFactory: everyMinute, InitCtx: func(ctx context.Context, _ any) (context.Context, error) {
			logger.LogCtx(ctx, "message", "init")
			meta, _ := loggermeta.FromContext(ctx)
			meta.KeyVals["tenant"] = "acme"
			return ctx, nil
		}}, plain, wrapped)
		defer running(t, f)()
		put(t, source, configMap("a"))
		synctest.Wait()
	})

	keys := []string{"framework", "event", "object", "loop", "tenant", "resource", "step"}
	about := "framework=test event=update object=ConfigMap default/a loop=1 tenant=acme resource="
	want := []string{about + "plain step=ensure_created"}
	for _, step := range []string{"get_current_state", "get_desired_state", "new_update_patch", "apply_create_change", "apply_update_change"} {
		want = append(want, about+"speaking step="+step)
	}
	if diff := cmp.Diff(want, messages(t, &log, "said", keys...)); diff != "" {
		t.Errorf("in the steps (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want[1:], messages(t, &log, "around", keys...)); diff != "" {
		t.Errorf("around the steps (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"object=ConfigMap default/a loop=1 resource= step="}, messages(t, &log, "init", "object", "loop", "resource", "step")); diff != "" {
		t.Errorf("in InitCtx (-want +got):\n%s", diff)
	}
	applied := messages(t, &log, "applied", append(slices.Clone(keys), "level")...)
	if diff := cmp.Diff([]string{about + "speaking step=apply_create_change level=info"}, applied); diff != "" {
		t.Errorf("what was applied (-want +got):\n%s", diff)
	}
}

func TestLogCtxSaysInAPlanWhatIsPlanned(t *testing.T) {
	var log bytes.Buffer
	ops := &speaking{logger: logTo(t, &log)}
	r, err := framework.NewTypedCRUDResource(framework.TypedCRUDResourceConfig[*corev1.ConfigMap, string]{Logger: ops.logger, Ops: ops})
	if err != nil {
		t.Fatal(err)
	}
	ctx := loggermeta.NewContext(t.Context(), &loggermeta.LoggerMeta{KeyVals: map[string]string{"caller_of": "plan"}})
	if _, err := framework.PlanUpdate(ctx, configMap("a"), []framework.Resource{r}); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"caller_of=plan object=ConfigMap default/a resource=speaking step=get_current_state",
		"caller_of=plan object=ConfigMap default/a resource=speaking step=get_desired_state",
		"caller_of=plan object=ConfigMap default/a resource=speaking step=new_update_patch",
	}
	if diff := cmp.Diff(want, messages(t, &log, "said", "caller_of", "object", "resource", "step")); diff != "" {
		t.Error(diff)
	}
}

func BenchmarkProcessUpdateOfAResourceThatFindsNothingToDo(b *testing.B) {
	r, err := framework.NewTypedCRUDResource(framework.TypedCRUDResourceConfig[any, string]{Logger: quiet(b), Ops: inner{&journal{}}})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if err := framework.ProcessUpdate(b.Context(), "x", []framework.Resource{r}); err != nil {
			b.Fatal(err)
		}
	}
}

// nameless is an object that can't tell its name.
type nameless struct{ *corev1.ConfigMap }

func (nameless) GetName() string { panic("no name") }

func TestAResourceRunsForAnObjectWhoseNamePanics(t *testing.T) {
	ran := 0
	count := func(context.Context, any) error { ran++; return nil }
	resources := []framework.Resource{&resource{name: "r", created: count, deleted: count}}
	if err := framework.ProcessUpdate(t.Context(), nameless{&corev1.ConfigMap{}}, resources); err != nil || ran != 1 {
		t.Errorf("it ran %d times, error %v", ran, err)
	}
}
