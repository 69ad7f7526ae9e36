package deployment_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/operatorkit/operatorkit/resource/deployment"
	"github.com/operatorkit/operatorkit/resource/deployment/api"
)

func TestATallySaysHowFarAPlanIs(t *testing.T) {
	// What is random in the names of containers is left out.
	names := regexp.MustCompile(`web-\w{5}\b`)
	five := func(s *api.ServiceSpec) { s.Update.Parallelism = 5 }
	for name, tc := range map[string]struct {
		from, to api.ServiceSpec
		change   func(s *simulation)
		// want are what it says at times, in this order.
		want []string
	}{
		"an update": {from: web("app:v1", 1), to: web("app:v2", 1, hook("migrate")), want: []string{
			"0 of 3 operations done",
			"0 of 3 operations done; pulling app:v2 on m1",
			"0 of 3 operations done; pulling app:v2 on m1, 50 %",
			"1 of 3 operations done",
			"1 of 3 operations done; running the pre-deploy hook on m1",
			"2 of 3 operations done",
			"2 of 3 operations done; replacing web-N by web-N on m1",
			"3 of 3 operations done",
		}},
		"several at once": {to: web("app:v1", 5, five, data), want: []string{
			"2 of 7 operations done; running web-N on m1, running web-N on m1, running web-N on m1, and 2 more",
			"7 of 7 operations done",
		}},
		"fewer": {from: web("app:v1", 2), to: web("app:v1", 1), want: []string{
			"0 of 1 operations done; removing web-N on m1",
			"1 of 1 operations done",
		}},
		"a change in place, and a start": {from: web("app:v1", 2), to: web("app:v1", 2, func(s *api.ServiceSpec) { s.Container.Resources.Memory = quantity("1Gi") }),
			change: func(s *simulation) { s.machine("m1").containers[1].State = api.ContainerExited }, want: []string{
				"0 of 2 operations done; updating web-N on m1",
				"2 of 2 operations done",
			}},
		"one that fails": {from: web("app:v1", 1), to: web("bad:v2", 1), want: []string{"1 of 2 operations done, 1 failed"}},
		"one that is undone": {from: web("app:v1", 2), to: web("app:v2", 2, rollback), change: func(s *simulation) {
			failOn(s, 18, lost)
		}, want: []string{"1 of 3 operations done, 1 failed, 1 undone"}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := newSimulation(1)
				if tc.from.Name != "" {
					mustDeploy(t, s, tc.from)
				}
				if tc.change != nil {
					tc.change(s)
				}
				d := deployment.NewDeployment(s, tc.to, nil)
				plan, err := d.Plan(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				tally := deployment.NewTally(plan)
				said := []string{tally.String()}
				d.Progress = func(e deployment.ProgressEvent) {
					tally.Event(e)
					said = append(said, names.ReplaceAllString(tally.String(), "web-N"))
				}
				_, _ = d.Run(t.Context())
				rest := said
				for _, want := range tc.want {
					i := slices.Index(rest, want)
					if i < 0 {
						t.Fatalf("it never says %q, or not after those before:\n%s", want, strings.Join(said, "\n"))
					}
					rest = rest[i:]
				}
				if last := tc.want[len(tc.want)-1]; said[len(said)-1] != last {
					t.Errorf("it says %q in the end", said[len(said)-1])
				}
			})
		})
	}
}
