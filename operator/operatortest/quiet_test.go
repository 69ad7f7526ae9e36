package operatortest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/operator/operatortest"
)

func TestAnOperatorThatDoesNothingMoreIsQuiet(t *testing.T) {
	t.Parallel()
	operatortest.Quiet(t, shelfScenario(func(*shelves) {}))
}

func TestNothingOfTheLookWhetherAnOperatorIsQuietIsThereInTheNextPhase(t *testing.T) {
	t.Parallel()
	s := upTo(1, shelfScenario(func(*shelves) {}))
	s.Phases = append(s.Phases, operatortest.Phase{Name: "look", Until: func(ctx context.Context, user client.Client, namespace string) error {
		err := user.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "quiet-marker"}, &corev1.ConfigMap{})
		if err == nil {
			return errors.New("the marker is there")
		}
		return client.IgnoreNotFound(err)
	}})
	operatortest.Quiet(t, s)
}

func TestAnOperatorThatGoesOnIsNotQuiet(t *testing.T) {
	for _, test := range []struct {
		name     string
		change   func(*shelves)
		requests bool
	}{
		{"with requests", func(s *shelves) { s.asks = true }, true},
		{"with reconciliations that request nothing", func(s *shelves) { s.idles = true }, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			r := &failing{TB: t}
			operatortest.Quiet(r, upTo(1, shelfScenario(test.change)))
			for _, part := range []string{`scenario "shelf": phase "create": the operator has nothing to do, and is not quiet: `, " reconciliations: controller=shelves"} {
				if !strings.Contains(r.errors, part) {
					t.Errorf("want %q in: %s", part, r.errors)
				}
			}
			if strings.Contains(r.errors, "requests: GET configmaps") != test.requests {
				t.Errorf("want requests: %t, got: %s", test.requests, r.errors)
			}
		})
	}
}

// failing is a test that keeps its errors.
type failing struct {
	testing.TB
	errors string
}

func (f *failing) Errorf(format string, args ...any) { f.errors += fmt.Sprintf(format, args...) }
