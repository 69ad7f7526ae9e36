package operatortest_test

import (
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/operatorkit/operatorkit/operator/operatortest"
)

func TestAnOperatorThatAsksBeforeItWritesSurvivesAServerThatLags(t *testing.T) {
	t.Parallel()
	report, failures := sweepOf(t, shelfScenario(func(*shelves) {}), operatortest.Lags)
	if len(report.Writes) != 4 || report.Lags != 4*len(report.Writes) || len(report.NotReached) != 0 || len(failures) != 0 {
		t.Errorf("want four lags for each of four writes and nothing else, got: %s, %v", report.Summary(), report.Err())
	}
	if line := "\n  restart in the past after a write: 4 runs, 4 converged, 0 wrong writes"; !strings.Contains(report.Summary(), line) {
		t.Errorf("want a line %q in: %s", line, report.Summary())
	}
}

func TestOperatorsThatBelieveOldListsAreCaught(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*shelves)
		mishap operatortest.Mishap
		want   []string // the beginnings of failures there must be
		reason string
	}{
		{
			name:   "deletes what a list has no owner of, of a kind with a group",
			change: func(s *shelves) { s.rules = true },
			mishap: operatortest.RestartWarm,
			want:   []string{"restart with an old cache after write"},
			reason: "the operator deleted what has to stay: DELETE roles",
		},
		{
			name:   "writes what a list says",
			change: func(s *shelves) { s.writesByList = true },
			mishap: operatortest.RestartBehind,
			want:   []string{"restart at a lagging replica after write 2: PUT secrets page-of-shop (3 changes back): change"},
			reason: "the operator set back to an earlier state: PUT secrets",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			scenario := shelfScenario(test.change)
			scenario.Objects = append(scenario.Objects, &rbacv1.Role{})
			report, failures := sweepOf(t, scenario, operatortest.Lags)
			all := strings.Join(failures, "\n")
			for _, want := range test.want {
				if !strings.Contains(all, want) {
					t.Errorf("want a failure %q, got:\n%s", want, all)
				}
			}
			if err := report.Err(); err == nil || !strings.Contains(err.Error(), test.reason) {
				t.Errorf("want the reason %q, got: %v", test.reason, err)
			}
			if tally := report.Met[test.mishap]; tally.Wrong == 0 || tally.Converged == 0 {
				t.Errorf("the wrong writes are made good, got: %s", report.Summary())
			}
		})
	}
}
