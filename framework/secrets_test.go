package framework_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/giantswarm/micrologger"
	corev1 "k8s.io/api/core/v1"

	"github.com/operatorkit/operatorkit/context/secretscontext"
	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/informer"
)

const secretValue = "hunter2-and-more"

// shownRecords keeps what an Observer is told, as JSON.
type shownRecords struct {
	mu sync.Mutex
	b  strings.Builder
}

func (r *shownRecords) Observe(record *framework.Record) {
	b, err := json.Marshal(record)
	if err != nil {
		panic(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprintf(&r.b, "%s\n%+v\n", b, *record)
}

// wantNoSecret looks for the value as it is and in base64.
func wantNoSecret(t *testing.T, shown map[string]string) {
	t.Helper()
	encoded := base64.RawStdEncoding.EncodeToString([]byte(secretValue))
	for where, text := range shown {
		for _, form := range []string{secretValue, encoded} {
			if strings.Contains(text, form) {
				t.Errorf("the value of a Secret is in the %s as %q:\n%s", where, form, text)
			}
		}
	}
}

// quotations are ways in which an author says what he should not.
var quotations = map[string]func(ctx context.Context, logger micrologger.Logger, s *corev1.Secret) error{
	"an error with its JSON": func(_ context.Context, _ micrologger.Logger, s *corev1.Secret) error {
		b, err := json.Marshal(s)
		return errors.Join(err, fmt.Errorf("can't use %q", b))
	},
	"an error with the value": func(_ context.Context, _ micrologger.Logger, s *corev1.Secret) error {
		return framework.Permanent(fmt.Errorf("can't log in with %q", s.Data["password"]))
	},
	"an error with its base64": func(_ context.Context, _ micrologger.Logger, s *corev1.Secret) error {
		return errors.New("can't use " + base64.StdEncoding.EncodeToString(s.Data["password"]))
	},
	"a panic": func(_ context.Context, _ micrologger.Logger, s *corev1.Secret) error {
		panic(fmt.Sprintf("can't use %s", s.Data["password"]))
	},
	"a panic of an error": func(_ context.Context, _ micrologger.Logger, s *corev1.Secret) error {
		panic(fmt.Errorf("can't use %s", s.Data))
	},
	"a message": func(ctx context.Context, logger micrologger.Logger, s *corev1.Secret) error {
		logger = framework.Logger(ctx, logger)
		logger.Log("level", "info", "message", "use "+secretValue, "secret", s, "data", s.Data, "error", errors.New(secretValue))
		logger.LogCtx(ctx, "level", "info", "message", secretValue)
		logger.With("password", secretValue).WithIncreasedCallerDepth().Debug(ctx, secretValue)
		pointed := secretValue
		logger.Log("level", "info", "message", "pointers", "password", &pointed, "config", struct{ Password *string }{&pointed})
		logger.Debugf(ctx, "use %s", s.Data["password"])
		logger.Error(ctx, fmt.Errorf("use: %w", errors.New(secretValue)), secretValue)
		logger.Errorf(ctx, errors.New(secretValue), "use %s", s.Data["password"])
		return errBoom
	},
}

func TestR14WhatIsSaidOfAReconciliationQuotesNoSecretThatItRead(t *testing.T) {
	for name, quote := range quotations {
		for _, step := range []framework.Step{"", framework.StepGetCurrentState, framework.StepApplyCreateChange} {
			t.Run(strings.TrimSuffix(name+" in "+string(step), " in "), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					log, recorder, observer := &strings.Builder{}, &events{}, &shownRecords{}
					logger, source := logTo(t, log), informer.NewPush("secrets")
					provider, exporter := newTraces(t)
					fails := func(ctx context.Context, obj any) error { return quote(ctx, logger, obj.(*corev1.Secret)) }
					resource := framework.Resource(&resource{name: "r", created: fails})
					if step != "" {
						var err error
						resource, err = framework.NewCRUDResource(framework.CRUDResourceConfig{Logger: logger, Ops: &quoting{step: step, fails: fails}})
						if err != nil {
							t.Fatal(err)
						}
					}
					f := newFramework(t, framework.Config{Source: source, Logger: logger, Recorder: recorder, Observer: observer, TracerProvider: provider}, resource)
					stop := running(t, f)
					s := &corev1.Secret{ObjectMeta: configMap("token").ObjectMeta, Data: map[string][]byte{"password": []byte(secretValue)}}
					put(t, source, s)
					synctest.Wait()
					p, err := f.Plan(t.Context(), keyOf("token"))
					time.Sleep(time.Minute)
					stop()
					if err != nil || !strings.Contains(log.String(), "reconciliation failed") || len(recorder.all()) == 0 {
						t.Fatalf("it did not fail: %v, %v\n%s", err, recorder.all(), log)
					}
					wantNoSecret(t, map[string]string{
						"log": log.String(), "events": strings.Join(recorder.all(), "\n"), "records": observer.b.String(), "plan": shownPlan(t, p), "spans": fmt.Sprintf("%+v", exporter.GetSpans()),
					})
				})
			})
		}
	}
}

func shownPlan(t *testing.T, p *plan.Plan) string {
	t.Helper()
	var b bytes.Buffer
	if err := errors.Join(plan.WriteText(&b, []*plan.Plan{p}, plan.TextOptions{MaxValue: -1}), plan.WriteJSON(&b, []*plan.Plan{p})); err != nil {
		t.Fatal(err)
	}
	return b.String() + plan.Difference(&plan.Plan{}, p)
}

// secretCopy is a ConfigMap with a value of a Secret in it.
func secretCopy() *corev1.ConfigMap {
	return configMap("copy", "url", "https://me:"+secretValue+"@example.com")
}

// quoting is a CRUD resource that copies a Secret into a ConfigMap, and fails at one step.
type quoting struct {
	step  framework.Step
	fails func(ctx context.Context, obj any) error
	// shows is what it creates. Default: the ConfigMap, and a text.
	shows any
}

func (q *quoting) at(ctx context.Context, step framework.Step, obj any) error {
	if q.step != step {
		return nil
	}
	return q.fails(ctx, obj)
}

func (q *quoting) Name() string { return "quoting" }

func (q *quoting) GetCurrentState(ctx context.Context, obj any) (any, error) {
	return nil, q.at(ctx, framework.StepGetCurrentState, obj)
}

func (q *quoting) GetDesiredState(context.Context, any) (any, error) { return notable{}, nil }

func (q *quoting) NewUpdatePatch(context.Context, any, any, any) (*framework.Patch, error) {
	p := framework.NewPatch()
	if q.shows == nil {
		p.SetCreateChange([]any{secretCopy(), secretValue})
	} else {
		p.SetCreateChange(q.shows)
	}
	return p, nil
}

func (q *quoting) NewDeletePatch(context.Context, any, any, any) (*framework.Patch, error) {
	return nil, nil
}

func (q *quoting) ApplyCreateChange(ctx context.Context, obj, _ any) error {
	return q.at(ctx, framework.StepApplyCreateChange, obj)
}

func (q *quoting) ApplyUpdateChange(context.Context, any, any) error { return nil }
func (q *quoting) ApplyDeleteChange(context.Context, any, any) error { return nil }

// notable has a secret in a note.
type notable struct{}

func (notable) Notes() []string { return []string{"the password stays " + secretValue} }

func TestR14WhatAnAuthorAddsIsSecretInAllThatTheResourcesSay(t *testing.T) {
	reads := &resource{name: "reads", created: func(ctx context.Context, _ any) error {
		secretscontext.Add(ctx, secretValue)
		return nil
	}}
	fails := &resource{name: "fails", created: func(context.Context, any) error { return fmt.Errorf("login with %s: %w", secretValue, errBoom) }}
	want := `update of ConfigMap default/a: resource "fails": ensure created: login with (sensitive): boom`

	err := framework.ProcessUpdate(t.Context(), configMap("a"), []framework.Resource{reads, fails})
	if !errors.Is(err, errBoom) || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	var step *framework.StepError
	if !errors.As(err, &step) || strings.Contains(step.Error(), secretValue) {
		t.Errorf("the step says %v", step)
	}

	inner := &resource{name: "outer", created: func(ctx context.Context, obj any) error {
		_ = framework.ProcessUpdate(ctx, obj, []framework.Resource{reads})
		return fails.created(ctx, obj)
	}}
	if err := framework.ProcessUpdate(t.Context(), configMap("a"), []framework.Resource{inner}); strings.Contains(err.Error(), secretValue) {
		t.Errorf("what an inner reconciliation knows the outer one shows: %v", err)
	}
	if err := framework.ProcessUpdate(t.Context(), configMap("a"), []framework.Resource{fails}); !strings.Contains(err.Error(), secretValue) {
		t.Errorf("a value of an earlier reconciliation is secret in the next one: %v", err)
	}
}

func TestR14NoResourceShowsASecretThatALaterOneReads(t *testing.T) {
	const want = "https://me:(sensitive)@example.com"
	for name, shows := range map[string]any{"an object": secretCopy(), "an object and a text": nil} {
		for order, readFirst := range map[string]bool{"and then read": false, "after it was read": true} {
			t.Run(name+" "+order, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					configs, err := framework.NewCRUDResource(framework.CRUDResourceConfig{Logger: quiet(t), Ops: &quoting{step: "none", shows: shows}})
					if err != nil {
						t.Fatal(err)
					}
					w := &world{}
					tokens := setting(t, &settingOps{world: w, name: "x", on: func(ctx context.Context) error {
						secretscontext.Add(ctx, secretValue)
						return nil
					}})
					resources := []framework.Resource{configs, tokens}
					if readFirst {
						slices.Reverse(resources)
					}

					s := newSaving(t, configMap("a", "x", "1"), resources...)
					p := s.saved(t)
					if err := s.ApplyPlan(t.Context(), p); err != nil || w.get("x") != "1" {
						t.Errorf("the plan is not applied: %v, x is %q", err, w.get("x"))
					}

					observer, source := &shownRecords{}, informer.NewPush("objects")
					stop := running(t, newFramework(t, framework.Config{Source: source, Observer: observer}, resources...))
					put(t, source, configMap("a", "x", "2"))
					synctest.Wait()
					stop()

					shown := map[string]string{"plan": shownPlan(t, p), "records": observer.b.String()}
					wantNoSecret(t, shown)
					for where, text := range shown {
						if !strings.Contains(text, want) {
							t.Errorf("%q is not in the %s:\n%s", want, where, text)
						}
					}
				})
			})
		}
	}
}

func TestR14ARecordQuotesNoSecretThatItsConclusionReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conclusion := newConcluding(nil)
		conclusion.created = func(ctx context.Context, _ any) error {
			secretscontext.Add(ctx, secretValue)
			return nil
		}
		observer, source := &shownRecords{}, informer.NewPush("objects")
		fails := failing("fails", framework.Permanent(errors.New("login with "+secretValue)))
		stop := running(t, newFramework(t, framework.Config{Source: source, Observer: observer}, fails, conclusion))
		put(t, source, configMap("a"))
		synctest.Wait()
		stop()
		wantNoSecret(t, map[string]string{"records": observer.b.String()})
		if !strings.Contains(observer.b.String(), "login with (sensitive)") {
			t.Errorf("the records are %s", &observer.b)
		}
	})
}

func TestWhatAResourceLogsHasItsOwnPlace(t *testing.T) {
	log := &strings.Builder{}
	logger := logTo(t, log)
	logs := &resource{name: "r", created: func(ctx context.Context, _ any) error {
		framework.Logger(ctx, logger).Log("level", "info", "message", "here")
		return nil
	}}
	if err := framework.ProcessUpdate(t.Context(), configMap("a"), []framework.Resource{logs}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(log.String(), "framework/secrets_test.go:") {
		t.Errorf("the log says %s", log)
	}
}

// R14: events that an author writes inside a step.
func TestR14EventsOfAStepAreScrubbed(t *testing.T) {
	recorded := &events{}
	work := &resource{name: "r", created: func(ctx context.Context, obj any) error {
		secretscontext.Add(ctx, secretValue)
		framework.Recorder(ctx, recorded).Event(obj.(*corev1.ConfigMap), corev1.EventTypeWarning, "Refused", "can't log in with "+secretValue)
		return nil
	}}
	if err := framework.ProcessUpdate(t.Context(), configMap("a"), []framework.Resource{work}); err != nil {
		t.Fatal(err)
	}
	told := fmt.Sprint(recorded.all())
	wantNoSecret(t, map[string]string{"event": told})
	if !strings.Contains(told, "can't log in with (sensitive)") {
		t.Errorf("the events are %s", told)
	}
	if got := framework.Recorder(t.Context(), recorded); got != framework.EventRecorder(recorded) {
		t.Errorf("outside of a reconciliation there is a %T", got)
	}
}
