package native_test

import (
	"testing"

	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/health"
)

func TestExpressionsAreCompiledWhereTheyAreWiredIn(t *testing.T) {
	w := newPlatform(t)
	w.useEast()
	w.manifests("page", configMapText("page", "hello"))
	page := w.service("page", "page")
	page.HealthCheckExprs = []v1alpha1.HealthCheckExpr{{APIVersion: "v1", Kind: "ConfigMap", Current: "data.text =="}}
	w.set("a", "east", page)
	w.settle("a", "page Failed")
	says(t, w.stateOf("a", "page").FailureMessage, "healthCheckExprs are not wired into this operator")
	w.config.HealthChecks = health.New()
	w.restart()
	w.settle("a", "page Failed")
	says(t, w.stateOf("a", "page").FailureMessage, "healthCheckExprs[0].current: it is no expression: ERROR: <input>:1:13")
	w.change("a", func(s *v1alpha1.ServiceSet) { s.Spec.Services[0].HealthCheckExprs[0].Current = "data.text == 'bye'" })
	w.settle("a", "page Provisioning")
	w.change("a", func(s *v1alpha1.ServiceSet) { s.Spec.Services[0].HealthCheckExprs[0].Current = "data.text == 'hello'" })
	w.settle("a", "page Deployed")
	w.quiet("a")
}
