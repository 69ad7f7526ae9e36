package compose_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/operatorkit/operatorkit/operator/machines/compose"
	"github.com/operatorkit/operatorkit/operator/machines/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/deployment/api"
)

func TestWhatRunsToItsEndBecomesAJobAndIsWaitedFor(t *testing.T) {
	for name, tc := range map[string]struct {
		// file has the services, of which the one called a is looked at.
		file string
		// want is "mode restart maxRetries, depends on".
		want string
		// remarks are those of the service.
		remarks []string
	}{
		"alone":         {"a: {image: i, restart: 'no'}", " no 0 []", nil},
		"no policy":     {"a: {image: i}", "  0 []", nil},
		"always":        {"a: {image: i, restart: always}", " unless-stopped 0 []", nil},
		"a job":         {"a: {image: i, restart: 'no'}\n  b: {image: i, depends_on: {a: {condition: service_completed_successfully}}}", "job no 0 []", nil},
		"of no policy":  {"a: {image: i}\n  b: {image: i, depends_on: {a: {condition: service_completed_successfully}}}", "job  0 []", nil},
		"of retries":    {"a: {image: i, restart: 'on-failure:3'}\n  b: {image: i, depends_on: {a: {condition: service_completed_successfully}}}", "job on-failure 3 []", nil},
		"of a profile":  {"a: {image: i}\n  b: {image: i, profiles: [p], depends_on: {a: {condition: service_completed_successfully}}}", "job  0 []", nil},
		"that goes on":  {"a: {image: i, restart: always}\n  b: {image: i, depends_on: {a: {condition: service_completed_successfully}}}", "job on-failure 0 []", []string{"services.a.restart: a job is not started again after it has ended with 0"}},
		"of several":    {"a: {image: i, scale: 3}\n  b: {image: i, depends_on: {a: {condition: service_completed_successfully}}}", "job  0 []", []string{"services.a.deploy.replicas: a job has one container"}},
		"of Swarm":      {"a: {image: i, deploy: {mode: replicated-job, replicas: 1}}", "job  0 []", nil},
		"on each node":  {"a: {image: i, deploy: {mode: global-job}}", "job  0 []", []string{"services.a.deploy.mode: a job runs on one machine, and not on each"}},
		"of a policy":   {"a: {image: i, deploy: {mode: replicated-job, restart_policy: {condition: on-failure, max_attempts: 2}}}", "job on-failure 2 []", nil},
		"policies":      {"a: {image: i, restart: 'on-failure:3', deploy: {restart_policy: {condition: none}}}", " no 0 []", nil},
		"waits for one": {"a: {image: i, depends_on: {b: {condition: service_completed_successfully}}}\n  b: {image: i}", "  0 [b]", nil},
		"waits, healthy and started": {"a: {image: i, depends_on: {c: {condition: service_started}, B_1: {condition: service_healthy}}}\n  B_1: {image: i}\n  c: {image: i}",
			"  0 [b-1 c]", nil},
		"waits for a job that is only to be started": {"a: {image: i, depends_on: [b]}\n  b: {image: i}\n  c: {image: i, depends_on: {b: {condition: service_completed_successfully}}}",
			"  0 [b]", []string{"services.a.depends_on.b: b is a job, and is waited for until it has completed"}},
		"is restarted": {"a: {image: i, depends_on: {b: {condition: service_started, restart: true}}}\n  b: {image: i}",
			"  0 [b]", []string{"services.a.depends_on.b.restart: it has no counterpart, and is left out"}},
		"is not required": {"a: {image: i, depends_on: {b: {condition: service_started, required: false}}}\n  b: {image: i}",
			"  0 [b]", []string{"services.a.depends_on.b.required: it has no counterpart, and is left out"}},
		"is not there": {"a: {image: i, depends_on: {b: {condition: service_started, required: false}}}\n  b: {image: i, profiles: [p]}",
			"  0 []", []string{"services.a.depends_on.b: it has no counterpart, and is left out"}},
		"is of a provider": {"a: {image: i, depends_on: [b]}\n  b: {provider: {type: model}}", "  0 []", []string{"services.a.depends_on.b: it has no counterpart, and is left out"}},
		"is implied": {"a: {image: i, links: [b], volumes_from: [c]}\n  b: {image: i}\n  c: {image: i}",
			"  0 [b c]", []string{"services.a.links: it has no counterpart, and is left out", "services.a.volumes_from: it has no counterpart, and is left out"}},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "compose.yaml")
			if err := os.WriteFile(file, []byte("services:\n  "+tc.file), 0o600); err != nil {
				t.Fatal(err)
			}
			project, err := compose.Load(t.Context(), compose.Source{Files: []string{file}, ProjectName: "p"})
			if err != nil {
				t.Fatal(err)
			}
			out, err := compose.Convert(project)
			if err != nil {
				t.Fatal(err)
			}
			i := slices.IndexFunc(out.Services, func(s *v1alpha1.MachineService) bool { return s.Name == "a" })
			spec := out.Services[i].Spec
			policy := spec.Container.RestartPolicy
			if got := fmt.Sprintf("%s %s %d %v", strings.TrimPrefix(string(spec.Mode), string(api.ServiceModeReplicated)), policy.Name, policy.MaxRetries, spec.DependsOn); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
			var remarks []string
			for _, r := range out.Remarks {
				if strings.HasPrefix(r.Path, "services.a.") {
					remarks = append(remarks, r.String())
				}
			}
			if diff := cmp.Diff(tc.remarks, slices.Sorted(slices.Values(remarks))); diff != "" {
				t.Errorf("remarks (-want +got):\n%s", diff)
			}
		})
	}
}
