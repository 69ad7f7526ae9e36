package statemanagers_test

import (
	"sync/atomic"
	"testing"

	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager"
)

// TestAServiceThatWasGivenUpIsTriedAgainWhenSomebodyAsks holds that the annotation of a ClusterDeployment is heard.
func TestAServiceThatWasGivenUpIsTriedAgainWhenSomebodyAsks(t *testing.T) {
	w := newWorld(t)
	w.files("rules", map[string]string{"rules.yaml": mapManifest})
	w.create(filesTemplate("rules"))
	w.reach("one")
	var failing atomic.Bool
	failing.Store(true)
	w.east.On(func(r operatortest.Request) bool {
		return failing.Load() && r.Name == "rules" && r.Verb == "patch" && !r.DryRun
	}, operatortest.InternalError())
	w.start()
	rules := w.service("rules=rules")
	rules.MaxAttempts = 1
	one := cluster("one", rules)
	w.create(one)
	w.wantService("one", "rules", "Failed rules: given up after 1 attempts")
	failing.Store(false)
	change(w, one, func(cd *v1alpha1.ClusterDeployment) {
		cd.Annotations = map[string]string{statemanager.RetryAnnotation: "now"}
	})
	w.wantReady(one)
	w.wantText("rules", "allow", "some")
}
