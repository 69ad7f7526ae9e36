package statusresource_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/context/finalizerskeptcontext"
	"github.com/operatorkit/operatorkit/context/secretscontext"
	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/informer/notfound"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/resource/statusresource"
)

func TestTheStatusTellsHowTheReconciliationWent(t *testing.T) {
	k := newKit(t)
	failed := `resource "work": ensure created: it failed: no quota`
	for name, tc := range map[string]struct {
		spec pageSpec
		want []string
	}{
		"success":      {pageSpec{}, []string{"Ready=True Reconciled"}},
		"not yet":      {pageSpec{Reconciling: "1 of 2"}, []string{"Ready=False Starting: 1 of 2", "Reconciling=True Starting: 1 of 2"}},
		"never":        {pageSpec{Stalled: "no disk", Reconciling: "x"}, []string{"Ready=False Broken: no disk", "Stalled=True Broken: no disk"}},
		"error":        {pageSpec{Fails: "no quota"}, []string{"Ready=False Retrying: " + failed, "Reconciling=True Retrying: " + failed}},
		"no way on":    {pageSpec{Fails: "no quota", Permanently: true}, []string{"Ready=False Failed: " + failed, "Stalled=True Failed: " + failed}},
		"error before": {pageSpec{Fails: "no quota", Reconciling: "1 of 2"}, []string{"Ready=False Retrying: " + failed, "Reconciling=True Retrying: " + failed}},
	} {
		t.Run(name, func(t *testing.T) {
			k := *k
			k.t = t
			p := k.page(strings.ReplaceAll(name, " ", "-"), tc.spec)
			p, err := k.update(t.Context(), p, &work{}, k.status())
			if (err != nil) != (tc.spec.Fails != "") {
				t.Errorf("the reconciliation ended with %v", err)
			}
			k.wants(p, tc.want...)
			if p.Status.URL == "" {
				t.Error("the author's own field is missing")
			}
			before := k.faults.Count()
			p, _ = k.update(t.Context(), p, &work{}, k.status())
			for _, w := range k.faults.Writes()[before:] {
				t.Errorf("nothing has changed, and it wrote %s: %s", w, w.Body)
			}
			// It gets well, in another generation.
			p = k.edit(p, `{"spec":{"fails":null,"reconciling":null,"stalled":null,"text":"new"}}`)
			p, err = k.update(t.Context(), p, &work{}, k.status())
			if err != nil {
				t.Error(err)
			}
			k.wants(p, "Ready=True Reconciled")
		})
	}
}

func TestAnErrorOfSetIsToldAndTriedAgain(t *testing.T) {
	k := newKit(t)
	p, err := k.update(t.Context(), k.page("home", pageSpec{}), k.status(func(c *config) {
		c.Set = func(_ context.Context, p *page, _ *statusresource.Report) error {
			p.Status.URL = "half of it"
			return errors.New("no answer")
		}
	}))
	if err == nil || !strings.Contains(err.Error(), "set the status: no answer") {
		t.Errorf("got %v", err)
	}
	k.wants(p, "Ready=False Retrying: set the status: no answer", "Reconciling=True Retrying: set the status: no answer")
	if p.Status.URL != "" {
		t.Errorf("the status has what Set had set before its error: %q", p.Status.URL)
	}
}

func TestAConflictIsNoNews(t *testing.T) {
	k := newKit(t)
	p := k.page("home", pageSpec{})
	conflict := apierrors.NewConflict(version.WithResource("pages").GroupResource(), "home", errors.New("changed"))
	if _, err := k.update(t.Context(), p, &failing{conflict}, k.status()); !apierrors.IsConflict(err) {
		t.Errorf("got %v", err)
	}
	if k.faults.Count() > 0 {
		t.Errorf("it wrote %v", k.faults.Writes())
	}
}

// refused fails with conflicts, until it is told to end.
type refused struct {
	ended atomic.Bool
	tries atomic.Int64
	// told is after which try the status has told of it first.
	told atomic.Int64
}

func (*refused) Name() string { return "refused" }

func (r *refused) EnsureCreated(_ context.Context, obj any) error {
	if len(obj.(*page).Status.Conditions) > 0 {
		r.told.CompareAndSwap(0, r.tries.Load())
	}
	if r.ended.Load() {
		return nil
	}
	r.tries.Add(1)
	return apierrors.NewConflict(version.WithResource("pages").GroupResource(), "home", errors.New("changed"))
}

func (*refused) EnsureDeleted(context.Context, any) error { return nil }

func TestAConflictThatLastsIsTold(t *testing.T) {
	k := newKit(t)
	p, work := k.page("home", pageSpec{}), &refused{}
	ctx, cancel := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() {
		stopped <- run(ctx, t, k.server.RESTConfig(), k.namespace, "operator", func(c client.Client) []framework.Resource {
			return []framework.Resource{work, newStatus(t, c, k.logger)}
		})
	}()
	is := func(want string) {
		t.Helper()
		operatortest.Eventually(t, want, func() bool { return strings.HasPrefix(strings.Join(lines(k.read(p)), "\n"), want) })
	}
	is(`Ready=False Retrying: resource "refused": ensure created: `)
	operatortest.Eventually(t, "who is refused is shown that too", func() bool { return work.told.Load() > 0 })
	work.ended.Store(true)
	is("Ready=True Reconciled")
	cancel()
	if err := <-stopped; err != nil {
		t.Error(err)
	}
	if after := work.told.Load(); after < 5 {
		t.Errorf("the conflict is told after %d tries", after)
	}
}

// What somebody else holds stays so until somebody does something about it.
func TestAFieldThatAnotherManagerHoldsIsTold(t *testing.T) {
	k := newKit(t)
	p := k.page("home", pageSpec{})
	held := apierrors.NewApplyConflict([]metav1.StatusCause{{
		Type: metav1.CauseTypeFieldManagerConflict, Message: `conflict with "kubectl" using v1`, Field: ".data.a",
	}}, `Apply failed with 1 conflict: conflict with "kubectl" using v1: .data.a`)
	if _, err := k.update(t.Context(), p, &failing{held}, k.status()); err == nil {
		t.Error("there is no error")
	}
	if k.faults.Count() == 0 {
		t.Error("the status does not tell of it")
	}
}

// failing is a resource with this error.
type failing struct{ err error }

func (*failing) Name() string                               { return "failing" }
func (f *failing) EnsureCreated(context.Context, any) error { return f.err }
func (f *failing) EnsureDeleted(context.Context, any) error { return f.err }

// keeping keeps finalizers.
type keeping struct{}

func (keeping) Name() string                             { return "keeping" }
func (keeping) EnsureCreated(context.Context, any) error { return nil }
func (keeping) EnsureDeleted(ctx context.Context, _ any) error {
	finalizerskeptcontext.SetKept(ctx)
	return nil
}
func (keeping) Plan(context.Context, plan.Event, any) ([]plan.Change, error) { return nil, nil }

func TestADeletionIsToldOnlyWhileItWaits(t *testing.T) {
	k := newKit(t)
	p := k.page("home", pageSpec{})
	p = k.edit(p, `{"metadata":{"finalizers":["example.com/held"]}}`)
	if err := k.user.Delete(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if err := framework.ProcessDelete(t.Context(), k.read(p), []framework.Resource{&work{}, k.status()}); err != nil {
		t.Error(err)
	}
	if k.faults.Count() > 0 {
		t.Errorf("the end of a deletion wrote %v", k.faults.Writes())
	}
	if err := framework.ProcessDelete(t.Context(), k.read(p), []framework.Resource{keeping{}, k.status()}); err != nil {
		t.Error(err)
	}
	const waits = "Deleting: the deletion is not finished yet"
	k.wants(k.read(p), "Ready=False "+waits, "Reconciling=True "+waits)
	gone := k.read(p)
	k.edit(p, `{"metadata":{"finalizers":null}}`)
	if err := framework.ProcessDelete(t.Context(), gone, []framework.Resource{&failing{errors.New("boom")}, k.status()}); err == nil || strings.Contains(err.Error(), "not found") {
		t.Errorf("of an object that is gone: %v", err)
	}
}

// A plan that was saved is still the same when the clock has gone on.
func TestPlansHaveNoTimes(t *testing.T) {
	k := newKit(t)
	p := k.page("home", pageSpec{Text: "a"})
	now := time.Now()
	status := k.status(func(c *config) {
		c.Set = func(_ context.Context, p *page, report *statusresource.Report) error {
			now = now.Add(time.Hour)
			p.Status.URL = p.Name
			meta.SetStatusCondition(&p.Status.Conditions, metav1.Condition{
				Type: "Served", Status: metav1.ConditionTrue, Reason: "Yes", LastTransitionTime: metav1.NewTime(now),
			})
			report.Condition(metav1.Condition{Type: "Found", Status: metav1.ConditionFalse, Reason: "No", LastTransitionTime: metav1.NewTime(now)})
			return nil
		}
	})
	make := func() *plan.Plan {
		made, err := framework.PlanUpdate(t.Context(), k.read(p), []framework.Resource{status})
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	first, second := make(), make()
	if difference := plan.Difference(first, second); difference != "" {
		t.Errorf("a later plan differs:\n%s", difference)
	}
	var got []string
	for _, f := range first.Resources[0].Changes[0].Fields {
		got = append(got, f.String())
	}
	want := []string{
		`status.conditions[Found]: "False No"`, `status.conditions[Ready]: "True Reconciled"`, `status.conditions[Served]: "True Yes"`,
		`status.observedGeneration: 1`, `status.url: "home"`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if k.faults.Count() > 0 {
		t.Error("planning wrote")
	}
	if _, err := k.update(t.Context(), p, status); err != nil {
		t.Fatal(err)
	}
	if left := make().Counts(); left.Any() {
		t.Errorf("left to do: %s", left)
	}
}

func TestTimesAreThoseOfTransitionsAndConditionsOfOthersStay(t *testing.T) {
	k := newKit(t)
	long := metav1.NewTime(time.Now().Add(-time.Hour)).Rfc3339Copy()
	p := k.editStatus(k.page("home", pageSpec{Reconciling: "a"}), func(s *pageStatus) {
		s.Conditions = []metav1.Condition{
			{Type: "Reachable", Status: metav1.ConditionTrue, Reason: "Answered", LastTransitionTime: long},
			{Type: statusresource.ConditionReady, Status: metav1.ConditionFalse, Reason: "Old", LastTransitionTime: long},
			{Type: statusresource.ConditionStalled, Status: metav1.ConditionTrue, Reason: "Old", LastTransitionTime: long},
		}
	})
	p, err := k.update(t.Context(), p, k.status())
	if err != nil {
		t.Fatal(err)
	}
	k.wants(p, "Reachable=True Answered (of 0)", "Ready=False Starting: a", "Reconciling=True Starting: a")
	for conditionType, keeps := range map[string]bool{"Reachable": true, statusresource.ConditionReady: true, statusresource.ConditionReconciling: false} {
		if c := meta.FindStatusCondition(p.Status.Conditions, conditionType); c == nil || c.LastTransitionTime.Equal(&long) != keeps || c.LastTransitionTime.IsZero() {
			t.Errorf("%s is %+v", conditionType, c)
		}
	}
}

func TestAChangeOfSomebodyElseMeanwhileIsKept(t *testing.T) {
	k := newKit(t)
	seen := k.page("home", pageSpec{})
	k.edit(seen, `{"metadata":{"annotations":{"example.com/a":"b"}}}`)
	k.editStatus(seen, func(s *pageStatus) {
		s.Hosts = []string{"a"}
		s.Conditions = []metav1.Condition{{Type: "Reachable", Status: metav1.ConditionTrue, Reason: "Answered", LastTransitionTime: metav1.Now()}}
	})
	if err := framework.ProcessUpdate(t.Context(), seen, []framework.Resource{k.status()}); err != nil {
		t.Fatal(err)
	}
	p := k.read(seen)
	k.wants(p, "Reachable=True Answered (of 0)", "Ready=True Reconciled")
	if len(p.Status.Hosts) != 1 {
		t.Errorf("the hosts of somebody else are %v", p.Status.Hosts)
	}
}

// A status that says of a newer generation what holds for an older one would be a lie (R18), and one of another life no status at all.
func TestR17AStatusOfAnotherGenerationOrLifeIsNotWrittenOver(t *testing.T) {
	k := newKit(t)
	older, dead := k.page("older", pageSpec{}), k.page("dead", pageSpec{})
	k.edit(older, `{"spec":{"text":"new"}}`)
	if err := k.user.Delete(t.Context(), dead); err != nil {
		t.Fatal(err)
	}
	k.page("dead", pageSpec{})
	for _, p := range []*page{older, dead} {
		if err := framework.ProcessUpdate(t.Context(), p, []framework.Resource{k.status()}); !apierrors.IsConflict(err) {
			t.Errorf("%s: %v", p.Name, err)
		}
		if len(k.read(p).Status.Conditions) > 0 {
			t.Errorf("%s got a status", p.Name)
		}
	}
}

func TestR16ConditionsOfAnotherOperatorAreRefused(t *testing.T) {
	k := newKit(t)
	p := k.page("home", pageSpec{Fails: "a"})
	left, right := as(t.Context(), "left"), as(t.Context(), "right")
	if _, err := k.update(left, p, &work{}, k.status()); err == nil {
		t.Fatal("it did not fail")
	}
	before := k.faults.Count()
	p, err := k.update(right, p, k.status())
	var refused *statusresource.RefusedError
	if !errors.As(err, &refused) || refused.Condition != "Ready" || !framework.IsPermanent(err) || !strings.Contains(err.Error(), "operatorkit-v1_left_pages_status") {
		t.Errorf("got %v", err)
	}
	if k.faults.Count() > before {
		t.Errorf("it wrote %v", k.faults.Writes()[before:])
	}
	// Both tell of the object when they tell of other things.
	beside := k.status(func(c *config) { c.Prefix, c.Set = "Backup", nil })
	if p, err = k.update(right, p, beside); err != nil {
		t.Error(err)
	}
	failed := `resource "work": ensure created: it failed: a`
	k.wants(p, "BackupReady=True Reconciled", "Ready=False Retrying: "+failed, "Reconciling=True Retrying: "+failed)
	// What was called left goes on as right.
	if p, err = k.update(as(t.Context(), "right", "left"), p, k.status()); err != nil {
		t.Error(err)
	}
	k.wants(p, "BackupReady=True Reconciled", "Ready=True Reconciled")
	// People may write what they want.
	p = k.editStatus(p, func(s *pageStatus) { s.Conditions[0].Message, s.Conditions[1].Message = "by hand", "by hand" })
	if _, err = k.update(as(t.Context(), "right", "left"), p, k.status()); err != nil {
		t.Error(err)
	}
}

func TestADefinitionWithoutAPlaceForTheStatusIsTold(t *testing.T) {
	k := newKit(t)
	k.server.InstallCRDs(t, definition("Bare", "bares"), definition("Poor", "poors", "conditions"), definition("Blank", "blanks", "url"))
	for kind, want := range map[string]string{
		"Bare": "add the status subresource", "Poor": "add status.observedGeneration", "Blank": "add status.conditions",
	} {
		u := loose(kind)
		u.SetNamespace(k.namespace)
		u.SetName("home")
		if err := k.user.Create(t.Context(), u); err != nil {
			t.Fatal(err)
		}
		status, err := statusresource.New(statusresource.Config[*unstructured.Unstructured]{Client: k.client, Logger: k.logger})
		if err != nil {
			t.Fatal(err)
		}
		err = framework.ProcessUpdate(t.Context(), u, []framework.Resource{status})
		// That a status is not found may be a wrong answer to a write, which is tried again.
		if err == nil || !strings.Contains(err.Error(), want) || framework.IsPermanent(err) != (kind != "Bare") {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

func TestAnUnstructuredPrimaryHasTheSameStatus(t *testing.T) {
	k := newKit(t)
	p := k.page("home", pageSpec{})
	status, err := statusresource.New(statusresource.Config[*unstructured.Unstructured]{
		Client: k.client, Logger: k.logger,
		Set: func(_ context.Context, u *unstructured.Unstructured, report *statusresource.Report) error {
			report.Reconciling("Starting", "soon")
			return unstructured.SetNestedField(u.Object, "here", "status", "url")
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		u := loose("Page")
		if err := k.user.Get(t.Context(), client.ObjectKeyFromObject(p), u); err != nil {
			t.Fatal(err)
		}
		if err := framework.ProcessUpdate(t.Context(), u, []framework.Resource{status}); err != nil {
			t.Fatal(err)
		}
	}
	now := k.read(p)
	k.wants(now, "Ready=False Starting: soon", "Reconciling=True Starting: soon")
	if now.Status.URL != "here" || k.faults.Count() != 1 {
		t.Errorf("url %q after %d writes", now.Status.URL, k.faults.Count())
	}
}

func TestAPlainSetWritesWhatItSays(t *testing.T) {
	k := newKit(t)
	p := k.page("home", pageSpec{})
	var told []string
	status := k.status(func(c *config) {
		c.Custom = true
		c.Set = func(_ context.Context, p *page, _ *statusresource.Report) error {
			p.Status.Hosts = []string{"a", "b"}
			return nil
		}
		c.Written = func(_ context.Context, before, after *page) {
			told = append(told, before.ResourceVersion+" "+strings.Join(after.Status.Hosts, "+"))
		}
	})
	for range 2 {
		if _, err := k.update(t.Context(), p, status, &work{}); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{p.ResourceVersion + " a+b"}, told); diff != "" {
		t.Error(diff)
	}
	k.wants(k.read(p), "observed 0 of 1")
}

func TestEveryFaultOfAConfigurationIsNamed(t *testing.T) {
	_, err := statusresource.New(statusresource.Config[*page]{Custom: true, Prefix: "x"})
	for _, want := range []string{"Client must not be nil", "Logger must not be nil", "Set must not be nil", "Prefix must be empty"} {
		if !framework.IsInvalidConfig(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
	_, err = statusresource.New(statusresource.Config[*metav1.PartialObjectMetadata]{})
	for _, want := range []string{"must have Conditions []metav1.Condition", "must have ObservedGeneration int64"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
}

// R14: whatever writes a message into a status, what the reconciliation has read as secret is not in it, not even where it was cut.
func TestR14MessagesAreWrittenWithoutSecretValues(t *testing.T) {
	k := newKit(t)
	const value = "hunter2-and-more"
	set := func(say func(p *page, report *statusresource.Report)) func(*config) {
		return func(c *config) {
			c.Set = func(_ context.Context, p *page, report *statusresource.Report) error {
				say(p, report)
				return nil
			}
		}
	}
	plain := func(message string) func(*config) {
		return func(c *config) {
			set(func(p *page, _ *statusresource.Report) {
				meta.SetStatusCondition(&p.Status.Conditions, metav1.Condition{Type: "Login", Status: metav1.ConditionFalse, Reason: "Refused", Message: message})
			})(c)
			c.Custom = true
		}
	}
	const quoted, want = "login with " + value, "login with (sensitive)"
	for name, tc := range map[string]struct {
		change func(*config)
		fails  string
		want   string
	}{
		"a condition": {change: set(func(_ *page, report *statusresource.Report) {
			report.Condition(metav1.Condition{Type: "Login", Status: metav1.ConditionFalse, Reason: "Refused", Message: quoted})
		}), want: want},
		"on its way":          {change: set(func(_ *page, report *statusresource.Report) { report.Reconciling("Waiting", quoted) }), want: want},
		"stalled":             {change: set(func(_ *page, report *statusresource.Report) { report.Stalled("Waiting", quoted) }), want: want},
		"an error":            {fails: quoted, change: func(*config) {}, want: want},
		"a value that is cut": {fails: strings.Repeat("x", statusresource.MaxMessage-60) + value, change: func(*config) {}, want: "x(sensitive)"},
		"a plain set":         {change: plain(quoted), want: want},
	} {
		t.Run(name, func(t *testing.T) {
			k := *k
			k.t = t
			p := k.page(strings.ReplaceAll(name, " ", "-"), pageSpec{Fails: tc.fails})
			for try := range 2 {
				ctx := secretscontext.NewContext(t.Context())
				secretscontext.Add(ctx, value)
				before := k.faults.Count()
				p, err := k.update(ctx, p, &work{}, k.status(tc.change))
				if (err != nil) != (tc.fails != "") {
					t.Fatal(err)
				}
				if writes := k.faults.Writes()[before:]; len(writes) != 1-try {
					t.Errorf("try %d made the writes %v", try, writes)
				}
				if told := strings.Join(lines(p), "; "); strings.Contains(told, value[:8]) || !strings.Contains(told, tc.want) {
					t.Errorf("the status says %q, want %q in it", told, tc.want)
				}
			}
		})
	}
}

// R14: a status that is written outside of a resource, by what was worked out in a reconciliation.
func TestR14WriteLeavesSecretValuesOut(t *testing.T) {
	k := newKit(t)
	p := k.page("home", pageSpec{})
	after := k.read(p)
	meta.SetStatusCondition(&after.Status.Conditions, metav1.Condition{Type: "Login", Status: metav1.ConditionFalse, Reason: "Refused", Message: "use hunter2-and-more"})
	ctx := secretscontext.NewContext(t.Context())
	secretscontext.Add(ctx, "hunter2-and-more")
	written, err := statusresource.Write(ctx, k.client, k.read(p), after)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []*page{written, k.read(p)} {
		if m := meta.FindStatusCondition(p.Status.Conditions, "Login").Message; m != "use (sensitive)" {
			t.Errorf("the status says %q", m)
		}
	}
}

// An object that is gone needs no status; one behind a proxy that answers 404 does.
func TestAStatusIsNotWrittenByA404OfAProxy(t *testing.T) {
	k := newKit(t)
	p := k.page("home", pageSpec{})
	lying := k.faults.On(func(r operatortest.Request) bool { return r.Resource == "pages" },
		operatortest.Answer(&apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound}}))
	if _, err := k.update(t.Context(), p, k.status()); !errors.Is(err, notfound.ErrDoubtful) {
		t.Errorf("the reconciliation ended with %v", err)
	}
	after := k.read(p)
	after.Status.URL = "https://home"
	if _, err := statusresource.Write(t.Context(), k.client, k.read(p), after); !errors.Is(err, notfound.ErrDoubtful) || apierrors.IsNotFound(err) {
		t.Errorf("writing ended with %v", err)
	}
	lying.Remove()
	p, err := k.update(t.Context(), p, k.status())
	if err != nil {
		t.Fatal(err)
	}
	k.wants(p, "Ready=True Reconciled")
	if err := k.user.Delete(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	p.Status = pageStatus{}
	if err := framework.ProcessUpdate(t.Context(), p, []framework.Resource{k.status()}); err != nil {
		t.Errorf("of one that is gone: %v", err)
	}
}
