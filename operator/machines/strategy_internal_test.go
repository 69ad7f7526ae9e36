package machines

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operatorkit/operatorkit/operator/machines/v1alpha1"
)

func TestEveryFaultOfAStrategyIsFound(t *testing.T) {
	step := func(percent int, pause time.Duration) v1alpha1.CanaryStep {
		return v1alpha1.CanaryStep{Percent: percent, Pause: metav1.Duration{Duration: pause}}
	}
	hold := func(d time.Duration) v1alpha1.Strategy {
		return v1alpha1.Strategy{Type: v1alpha1.StrategyBlueGreen, Hold: &metav1.Duration{Duration: d}}
	}
	steps := func(steps ...v1alpha1.CanaryStep) v1alpha1.Strategy {
		return v1alpha1.Strategy{Type: v1alpha1.StrategyCanary, Steps: steps}
	}
	for name, test := range map[string]struct {
		strategy v1alpha1.Strategy
		// want is a part of the error; without it there must be none.
		want string
	}{
		"none":                      {v1alpha1.Strategy{}, ""},
		"a hold of a day":           {hold(24 * time.Hour), ""},
		"a hold of a year":          {hold(8760 * time.Hour), "strategy.hold: Invalid value: \"8760h0m0s\""},
		"a hold of less than none":  {hold(-1), "strategy.hold: Invalid"},
		"steps that grow":           {steps(step(10, 0), step(20, 24*time.Hour)), ""},
		"a pause of two days":       {steps(step(10, 0), step(20, 48*time.Hour)), "strategy.steps[1].pause: Invalid"},
		"a pause of less than none": {steps(step(10, -1)), "strategy.steps[0].pause: Invalid"},
		"steps that do not grow":    {steps(step(20, 0), step(20, 0)), "strategy.steps[1].percent: Invalid"},
	} {
		err := checkStrategy(&test.strategy)
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want an error with %q", name, err, test.want)
		}
	}
}
