package window_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager/window"
)

func at(t testing.TB, text string) time.Time {
	t.Helper()
	parsed, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

func allow(schedule string, duration time.Duration, zone string) v1alpha1.ChangeWindow {
	return v1alpha1.ChangeWindow{Schedule: schedule, Duration: metav1.Duration{Duration: duration}, TimeZone: zone}
}

func deny(schedule string, duration time.Duration, zone string) v1alpha1.ChangeWindow {
	w := allow(schedule, duration, zone)
	w.Kind = v1alpha1.ChangeWindowDeny
	return w
}

func TestWindowsSayWhenChangesMayBeMade(t *testing.T) {
	nights := allow("0 22 * * MON-FRI", 8*time.Hour, "Europe/Berlin")
	for name, tt := range map[string]struct {
		windows []v1alpha1.ChangeWindow
		now     string
		until   string // empty is that it is open, and "never" that it does not open
	}{
		"without windows":           {nil, "2026-06-03T12:00:00Z", ""},
		"before a night, in summer": {[]v1alpha1.ChangeWindow{nights}, "2026-06-03T19:59:59Z", "2026-06-03T20:00:00Z"},
		"at its beginning":          {[]v1alpha1.ChangeWindow{nights}, "2026-06-03T20:00:00Z", ""},
		"after midnight":            {[]v1alpha1.ChangeWindow{nights}, "2026-06-04T03:59:59Z", ""},
		"at its end":                {[]v1alpha1.ChangeWindow{nights}, "2026-06-04T04:00:00Z", "2026-06-04T20:00:00Z"},
		"in winter":                 {[]v1alpha1.ChangeWindow{nights}, "2026-12-03T20:59:00Z", "2026-12-03T21:00:00Z"},
		"over a weekend":            {[]v1alpha1.ChangeWindow{nights}, "2026-06-06T12:00:00Z", "2026-06-08T20:00:00Z"},
		"a window that denies within one that allows": {[]v1alpha1.ChangeWindow{nights, deny("30 22 * * *", time.Hour, "Europe/Berlin")}, "2026-06-03T20:30:00Z", "2026-06-03T21:30:00Z"},
		"one that denies to the end of it":            {[]v1alpha1.ChangeWindow{nights, deny("0 0 4 6 *", 24*time.Hour, "Europe/Berlin")}, "2026-06-03T22:00:00Z", "2026-06-04T22:00:00Z"},
		"only one that denies, before":                {[]v1alpha1.ChangeWindow{deny("0 0 24 12 *", 72*time.Hour, "")}, "2026-12-23T23:59:00Z", ""},
		"only one that denies, in it":                 {[]v1alpha1.ChangeWindow{deny("0 0 24 12 *", 72*time.Hour, "")}, "2026-12-25T12:00:00Z", "2026-12-27T00:00:00Z"},
		"two that overlap":                            {[]v1alpha1.ChangeWindow{deny("0 0 * * *", 20*time.Hour, ""), deny("0 12 * * *", 20*time.Hour, "")}, "2026-12-25T12:00:00Z", "never"},
		"one that follows itself":                     {[]v1alpha1.ChangeWindow{allow("*/15 * * * *", 15*time.Minute, "")}, "2026-12-25T12:14:59Z", ""},
		"either day":                                  {[]v1alpha1.ChangeWindow{allow("0 0 13 * FRI", time.Hour, "")}, "2026-06-10T12:00:00Z", "2026-06-12T00:00:00Z"},
		"Sunday is seven":                             {[]v1alpha1.ChangeWindow{allow("0 0 * * 7", time.Hour, "")}, "2026-06-10T12:00:00Z", "2026-06-14T00:00:00Z"},
		"a leap day":                                  {[]v1alpha1.ChangeWindow{allow("0 0 29 2 *", time.Hour, "")}, "2027-06-10T12:00:00Z", "2028-02-29T00:00:00Z"},
		"a leap day that is far":                      {[]v1alpha1.ChangeWindow{allow("0 0 29 2 *", time.Hour, "")}, "2026-06-10T12:00:00Z", "never"},
		"far behind many that deny": {
			[]v1alpha1.ChangeWindow{allow("0 22 * * MON", time.Hour, ""), deny("* 0-21 * * *", time.Minute, "")}, "2026-06-08T23:00:00Z", "2026-06-15T22:00:00Z",
		},
		"an hour that the clocks leave out":        {[]v1alpha1.ChangeWindow{allow("30 2 * * *", time.Hour, "Europe/Berlin")}, "2026-03-29T00:00:00Z", "2026-03-29T01:30:00Z"},
		"one that they leave out in the west":      {[]v1alpha1.ChangeWindow{allow("30 2 * * *", time.Hour, "America/New_York")}, "2026-03-08T06:00:00Z", "2026-03-08T07:30:00Z"},
		"one that they leave out for half an hour": {[]v1alpha1.ChangeWindow{allow("15,40 2 * * *", time.Minute, "Australia/Lord_Howe")}, "2026-10-03T15:00:00Z", "2026-10-03T15:40:00Z"},
		"an hour that they show twice":             {[]v1alpha1.ChangeWindow{allow("30 2 * * *", time.Hour, "Europe/Berlin")}, "2026-10-25T00:00:00Z", "2026-10-25T00:30:00Z"},
		"one that they show twice in the west":     {[]v1alpha1.ChangeWindow{allow("30 1 * * *", time.Hour, "America/New_York")}, "2026-11-01T05:00:00Z", "2026-11-01T05:30:00Z"},
	} {
		t.Run(name, func(t *testing.T) {
			windows, err := window.Of(tt.windows)
			if err != nil {
				t.Fatal(err)
			}
			closed := windows.Closed(at(t, tt.now), window.Changes)
			switch {
			case closed == nil:
				if tt.until != "" {
					t.Error("it is open")
				}
			case tt.until == "":
				t.Errorf("it is closed: %s", closed)
			case tt.until == "never":
				if !closed.Until.IsZero() || !strings.Contains(closed.String(), "not within a year") {
					t.Errorf("it is closed: %s", closed)
				}
			case !closed.Until.Equal(at(t, tt.until)):
				t.Errorf("it is closed: %s, want %s", closed, tt.until)
			}
		})
	}
}

func TestRemovalsAreHeldUpByWindowsThatSaySo(t *testing.T) {
	freeze := deny("0 0 * * *", 23*time.Hour, "")
	for _, removals := range []bool{false, true} {
		freeze.Removals = removals
		windows, err := window.Of([]v1alpha1.ChangeWindow{freeze, allow("0 0 1 1 *", time.Hour, "")})
		if err != nil {
			t.Fatal(err)
		}
		if closed := windows.Closed(at(t, "2026-06-10T12:00:00Z"), window.Removals); (closed != nil) != removals {
			t.Errorf("removals %t: %v", removals, closed)
		}
	}
}

func TestBadWindowsAreRefusedWithTheirPlace(t *testing.T) {
	for want, bad := range map[string]v1alpha1.ChangeWindow{
		`changeWindows[1].schedule: "0 22 * *" has 4 fields`:                           allow("0 22 * *", time.Hour, ""),
		`changeWindows[1].schedule: "0 24 * * *": the hour "24": 24 is not between 0`:  allow("0 24 * * *", time.Hour, ""),
		`changeWindows[1].schedule: "0 a * * *": the hour "a": it is no number`:        allow("0 a * * *", time.Hour, ""),
		`the day of the week "FRI-MON": the range "FRI-MON" goes backwards`:            allow("0 0 * * FRI-MON", time.Hour, ""),
		`the minute "*/0": the step "0" is no positive number`:                         allow("*/0 0 * * *", time.Hour, ""),
		`the minute "1/9223372036854775807": the step "9223372036854775807" is beyond`: allow("1/9223372036854775807 * * * *", time.Hour, ""),
		`the hour "*/25": the step "25" is beyond the 24 values that there are`:        allow("0 */25 * * *", time.Hour, ""),
		`changeWindows[1].schedule: "0 0 30 2 *" is never`:                             allow("0 0 30 2 *", time.Hour, ""),
		`changeWindows[1].timeZone: there is no time zone "Europe/Bonn"`:               allow("0 0 * * *", time.Hour, "Europe/Bonn"),
		`changeWindows[1].timeZone: there is no time zone "Local"`:                     allow("0 0 * * *", time.Hour, "Local"),
		"changeWindows[1].duration: 0s is not between a minute and 744h0m0s":           allow("0 0 * * *", 0, ""),
		"changeWindows[1].duration: 10000h0m0s is not between a minute and 744h0m0s":   allow("0 0 * * *", 10000*time.Hour, ""),
	} {
		_, err := window.Of([]v1alpha1.ChangeWindow{allow("0 0 * * *", time.Hour, ""), bad})
		if !framework.IsPermanent(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, and the error is %v", want, err)
		}
	}
}

func TestWindowsThatAreAlwaysClosedAreCheap(t *testing.T) {
	sixteen := func(of func(i int) v1alpha1.ChangeWindow) (windows []v1alpha1.ChangeWindow) {
		for i := range 16 {
			windows = append(windows, of(i))
		}
		return windows
	}
	now := at(t, "2026-06-03T12:00:30Z")
	for name, given := range map[string][]v1alpha1.ChangeWindow{
		"each minute": sixteen(func(int) v1alpha1.ChangeWindow { return deny("* * * * *", time.Minute, "") }),
		"each minute, where the clocks are changed": append(sixteen(func(int) v1alpha1.ChangeWindow {
			return deny("* * * * *", time.Minute, "America/New_York")
		}), deny("0 0 * * *", 24*time.Hour, "")),
		"now and then, and seldom": sixteen(func(i int) v1alpha1.ChangeWindow {
			switch i {
			case 0:
				return allow("*/2 * * * *", time.Minute, "")
			case 1:
				return deny("*/2 * * * *", time.Minute, "")
			}
			return allow("0 0 29 2 *", time.Minute, "Europe/Berlin")
		}),
	} {
		t.Run(name, func(t *testing.T) {
			windows, err := window.Of(given)
			if err != nil {
				t.Fatal(err)
			}
			closed, effort := windows.ClosedFor(now, window.Changes)
			if closed == nil || effort > 2*window.Most {
				t.Fatalf("it is closed: %v, for an effort of %d", closed, effort)
			}
			// Nothing is woken by what is not told: it is looked at again where nobody has looked.
			if closed.Until.Before(now.Add(24*time.Hour)) || !strings.Contains(closed.String(), "and not before ") {
				t.Errorf("it is closed: %s", closed)
			}
		})
	}
}

// TestWhatIsClosedOpensWhenItSays holds that at the time that is told changes may be made, and not a minute before.
func TestWhatIsClosedOpensWhenItSays(t *testing.T) {
	schedules := rapid.SampledFrom([]string{"0 22 * * *", "*/20 * * * *", "30 2 * * 0", "0 0 1,15 * *", "15 6-9 * 3,10 MON-FRI", "0 3 31 * *"})
	zones := rapid.SampledFrom([]string{"", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu"})
	rapid.Check(t, func(rt *rapid.T) {
		var given []v1alpha1.ChangeWindow
		for range rapid.IntRange(1, 3).Draw(rt, "windows") {
			w := allow(schedules.Draw(rt, "schedule"), time.Duration(rapid.IntRange(1, 600).Draw(rt, "minutes"))*time.Minute, zones.Draw(rt, "zone"))
			if rapid.Bool().Draw(rt, "deny") {
				w.Kind = v1alpha1.ChangeWindowDeny
			}
			given = append(given, w)
		}
		windows, err := window.Of(given)
		if err != nil {
			rt.Fatal(err)
		}
		now := at(t, "2026-01-01T00:00:00Z").Add(time.Duration(rapid.IntRange(0, 600_000).Draw(rt, "now")) * time.Minute)
		closed := windows.Closed(now, window.Changes)
		if closed == nil || closed.Until.IsZero() {
			return
		}
		looked := !strings.Contains(closed.String(), "and not before ")
		if !closed.Until.After(now) || looked && windows.Closed(closed.Until, window.Changes) != nil {
			rt.Fatalf("at %s: %s", now, closed)
		}
		for before := closed.Until.Add(-time.Minute); before.After(now) && closed.Until.Sub(before) < 3*time.Hour; before = before.Add(-time.Minute) {
			if windows.Closed(before, window.Changes) == nil {
				rt.Fatalf("at %s: %s, and it is open at %s", now, closed, before)
			}
		}
	})
}
