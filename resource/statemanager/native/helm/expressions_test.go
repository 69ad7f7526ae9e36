package helm_test

import (
	"strings"
	"testing"

	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/health"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/helm"
)

// open is when a ConfigMap counts as it should be.
func open(t *testing.T) func(*carrier.Service) {
	return func(s *carrier.Service) {
		var err error
		s.HealthCheck, err = health.New().Compile([]v1alpha1.HealthCheckExpr{{
			APIVersion: "v1", Kind: "ConfigMap", Current: "metadata.annotations.phase == 'open'", Failed: "metadata.?annotations.phase.orValue('') == 'broken'",
		}})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestExpressionsTellTheHealthOfARelease(t *testing.T) {
	k := newKit(t, helm.Config{})
	service := k.service(chartOf("app", "1.0.0", files{"a.yaml": "{apiVersion: v1, kind: ConfigMap, metadata: {name: shop}}"}), open(t))
	waits := k.settle(service).Health
	if waits.Phase != v1alpha1.ServiceStateProvisioning || !strings.Contains(waits.Message, "healthCheckExprs[0].current") {
		t.Errorf("the health is %+v", waits)
	}
	for phase, want := range map[string]v1alpha1.ServicePhase{"broken": v1alpha1.ServiceStateFailed, "open": v1alpha1.ServiceStateDeployed} {
		k.edit("shop", `{"metadata":{"annotations":{"phase":"`+phase+`"}}}`)
		if got := k.compute(service).Health; got.Phase != want {
			t.Errorf("%s: the health is %+v", phase, got)
		}
	}
}
