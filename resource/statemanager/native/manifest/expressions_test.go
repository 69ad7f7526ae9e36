package manifest_test

import (
	"strings"
	"testing"

	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/health"
)

func TestExpressionsTellTheHealthOfManifests(t *testing.T) {
	k := newKit(t)
	service := k.service(files{"a.yaml": configMap("shop", "1")}, func(s *carrier.Service) {
		var err error
		s.HealthCheck, err = health.New().Compile([]v1alpha1.HealthCheckExpr{{
			APIVersion: "v1", Kind: "ConfigMap", Current: "data.phase == 'open'", Failed: "has(data.phase) && data.phase == 'broken'",
		}})
		if err != nil {
			t.Fatal(err)
		}
	})
	result := k.settle(service)
	k.wantsPhase(result, v1alpha1.ServiceStateProvisioning)
	if !strings.Contains(result.Health.Message, "healthCheckExprs[0].current can't be answered: no such key: phase") {
		t.Errorf("the health is %+v", result.Health)
	}
	for phase, want := range map[string]v1alpha1.ServicePhase{"broken": v1alpha1.ServiceStateFailed, "open": v1alpha1.ServiceStateDeployed} {
		k.patch(k.configMap("shop"), `{"data":{"phase":"`+phase+`"}}`)
		k.wantsPhase(k.compute(service), want)
	}
}
