package native_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager/native"
)

// nightly is a window that is open for an hour from 22:00 on.
func nightly() v1alpha1.ChangeWindow {
	return v1alpha1.ChangeWindow{Schedule: "0 22 * * *", Duration: metav1.Duration{Duration: time.Hour}, TimeZone: "UTC"}
}

// inWindows is a world of decisions with a clock, at noon, and a set with a service whose windows are those of nights.
func inWindows(t *testing.T, windows ...v1alpha1.ChangeWindow) (w *world, charts *recorder, clock *clocktesting.FakePassiveClock) {
	t.Helper()
	w, charts, _ = decisions(t)
	clock = clocktesting.NewFakePassiveClock(time.Date(2026, 6, 3, 12, 0, 0, 0, time.UTC))
	w.config.Clock = clock
	w.restart()
	w.set("a", "east", w.service("web", "chart-1"))
	w.change("a", func(s *v1alpha1.ServiceSet) { s.Spec.ChangeWindows = windows })
	return w, charts, clock
}

// waits checks that the service waits for a window, and returns after how long it is looked at again.
func (w *world) waits(state, until string) time.Duration {
	w.t.Helper()
	w.mustStep("a")
	work := w.mustStep("a")
	if got := states(w.get("a")); got != state {
		w.t.Errorf("states: %s, want %s", got, state)
	}
	if is := w.condition("a", "web", native.ConditionWaiting); is.Reason != native.ReasonWindow || !strings.Contains(is.Message, until) {
		w.t.Errorf("it waits with %s: %q, want %q", is.Reason, is.Message, until)
	}
	var notes []string
	for _, o := range work.Operations {
		if notes = append(notes, o.Notes...); len(o.Changes) > 0 {
			w.t.Errorf("what waits has changes: %v", o.Changes)
		}
	}
	says(w.t, strings.Join(notes, "\n"), "service ", "web waits for a change window: ", until)
	return work.Requeue
}

func TestChangesWaitForTheirWindow(t *testing.T) {
	w, charts, clock := inWindows(t, nightly())
	if after := w.waits("web Pending", "no window for changes is open, until Wed, 03 Jun 2026 22:00 UTC"); after != 10*time.Hour {
		t.Errorf("it is looked at again after %s", after)
	}
	expect(t, charts)
	clock.SetTime(time.Date(2026, 6, 3, 22, 0, 0, 0, time.UTC))
	w.settle("a", "web Deployed")
	w.quiet("a")
	expect(t, charts, "create web")

	// A change of values is not there, one of the template leaves it what it is.
	clock.SetTime(time.Date(2026, 6, 4, 12, 0, 0, 0, time.UTC))
	w.mustStep("a")
	w.quiet("a")
	w.change("a", func(s *v1alpha1.ServiceSet) { s.Spec.Services[0].Values = "x: 1" })
	w.waits("web Provisioning", "until Thu, 04 Jun 2026 22:00 UTC")
	w.change("a", func(s *v1alpha1.ServiceSet) { s.Spec.Services[0].Template, s.Spec.Services[0].Version = "chart-2", "2" })
	w.waits("web Deployed", "until Thu, 04 Jun 2026 22:00 UTC")
	if web := w.stateOf("a", "web"); web.Template != "chart-1" {
		t.Errorf("the state is about %s", web.Template)
	}
	expect(t, charts)

	// What has begun goes on.
	charts.will(func(r *recorder) { r.underWay["web"] = true })
	w.settle("a", "web Deployed")
	expect(t, charts, "update web")
	charts.will(func(r *recorder) { delete(r.underWay, "web") })

	// Drift is told, and put right in the window.
	w.change("a", func(s *v1alpha1.ServiceSet) {
		s.Spec.Provider.Config = syncMode(v1alpha1.SyncModeContinuousWithDriftDetection)
	})
	charts.will(func(r *recorder) {
		r.drift["web"] = []plan.Change{{Action: plan.Update, Object: plan.Object{Kind: "Thing", Name: "web"}}}
	})
	w.waits("web Deployed", "until Thu, 04 Jun 2026 22:00 UTC")
	if w.condition("a", "web", native.ConditionDrifted).Status != metav1.ConditionTrue {
		t.Error("the drift is not told")
	}
	expect(t, charts)
	clock.SetTime(time.Date(2026, 6, 4, 22, 30, 0, 0, time.UTC))
	w.mustStep("a")
	w.settle("a", "web Deployed")
	expect(t, charts, "update web")
}

func TestWhatIsTakenAwayWaitsOnlyForWindowsThatSaySo(t *testing.T) {
	for _, removals := range []bool{false, true} {
		window := nightly()
		window.Removals = removals
		w, charts, clock := inWindows(t, window)
		clock.SetTime(time.Date(2026, 6, 3, 22, 0, 0, 0, time.UTC))
		w.settle("a", "web Deployed")
		charts.done()
		clock.SetTime(time.Date(2026, 6, 4, 12, 0, 0, 0, time.UTC))
		if err := w.client.Delete(t.Context(), w.get("a")); err != nil {
			t.Fatal(err)
		}
		if removals {
			w.waits("web Deleting", "until Thu, 04 Jun 2026 22:00 UTC")
			expect(t, charts)
			clock.SetTime(time.Date(2026, 6, 4, 22, 0, 0, 0, time.UTC))
		}
		w.settle("a", "")
		expect(t, charts, "delete web")
	}
}

func TestWindowsThatCanNotBeReadHoldChangesUpAndNoRemovals(t *testing.T) {
	place, step := nightly(), nightly()
	place.TimeZone, step.Schedule = "Europe/Bonn", "1/9223372036854775807 * * * *"
	for why, window := range map[string]v1alpha1.ChangeWindow{
		`changeWindows[0].timeZone: there is no time zone "Europe/Bonn"`: place,
		`the step "9223372036854775807" is beyond the 60 values`:         step,
	} {
		t.Run(window.Schedule, func(t *testing.T) {
			w, charts, _ := inWindows(t, window)
			w.settle("a", "web Failed")
			says(t, w.stateOf("a", "web").FailureMessage, why)
			w.change("a", func(s *v1alpha1.ServiceSet) { s.Spec.ChangeWindows[0] = nightly() })
			w.waits("web Pending", "until Wed, 03 Jun 2026 22:00 UTC")
			w.change("a", func(s *v1alpha1.ServiceSet) { s.Spec.ChangeWindows = nil })
			w.settle("a", "web Deployed")
			w.change("a", func(s *v1alpha1.ServiceSet) { s.Spec.ChangeWindows = []v1alpha1.ChangeWindow{window} })
			if err := w.client.Delete(t.Context(), w.get("a")); err != nil {
				t.Fatal(err)
			}
			w.settle("a", "")
			expect(t, charts, "create web", "delete web")
		})
	}
}
